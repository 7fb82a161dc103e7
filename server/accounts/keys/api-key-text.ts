/**
 * The text of an API key: `clk_`, 32 base62 characters from the CSPRNG, 6 of checksum. The checksum is the
 * CRC-32 of the characters before it, in base62, so that typing errors and invented keys are refused without
 * a database query, and a scanner for leaked keys has few false alarms.
 */
import { hash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { randomBase62 } from '../../platform/ids.ts';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const FORM = /^clk_[0-9A-Za-z]{38}$/;
const CHECKED_LENGTH = 36;

/** CRC-32 of `text` as 6 base62 digits (62^6 > 2^32), most significant first. */
function checksum(text: string): string {
  let rest = crc32(text);
  let digits = '';
  for (let i = 0; i < 6; i++) {
    digits = BASE62.charAt(rest % 62) + digits;
    rest = Math.floor(rest / 62);
  }
  return digits;
}

export function newApiKey(): string {
  const checked = `clk_${randomBase62(32)}`;
  return checked + checksum(checked);
}

/** Why `text` is not a well-formed key; undefined if it is one. Does not reveal whether the key exists. */
export function apiKeyTextProblem(text: string): string | undefined {
  if (!FORM.test(text)) return 'a key is clk_ followed by 38 letters and digits';
  const isRight = checksum(text.slice(0, CHECKED_LENGTH)) === text.slice(CHECKED_LENGTH);
  return isRight ? undefined : 'its checksum, the last 6 characters, is wrong';
}

/**
 * SHA-256 in hex: how keys and session tokens are stored. A plain hash is enough for secrets of more
 * than 112 random bits (OWASP ASVS 5, 6.5.2).
 */
export function hashSecret(text: string): string {
  return hash('sha256', text, 'hex');
}
