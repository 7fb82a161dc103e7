/**
 * The recovery key: what a person keeps to open a repository of recovery points when the cloud is lost.
 *
 * 32 random bytes as text: `clr-`, 52 characters of Crockford's base32 (most significant first, padded with
 * zero bits at the end) and 4 more of checksum, the first 20 bits of the SHA-256 of the bytes; in groups of
 * seven, so that it can be read aloud. Case, spaces and dashes do not matter; o, i and l count as 0, 1 and 1.
 */
import { createHash } from 'node:crypto';
import { randomSecret } from '../platform/ids.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const KEY_BYTES = 32;
const KEY_DIGITS = 52;
const CHECK_DIGITS = 4;

export function newRecoveryKey(): Buffer {
  return randomSecret(KEY_BYTES);
}

export function recoveryKeyText(key: Uint8Array): string {
  const digits = toDigits(key, KEY_DIGITS) + checksum(key);
  return `clr-${digits.match(/.{7}/g)?.join('-')}`;
}

/** Throws an Error that says what is wrong with the text. */
export function readRecoveryKey(text: string): Buffer {
  const plain = text
    .trim()
    .toLowerCase()
    .replace(/[\s-]+/g, '')
    .replace(/^clr/, '')
    .replace(/o/g, '0')
    .replace(/[il]/g, '1');
  if (plain.length !== KEY_DIGITS + CHECK_DIGITS || [...plain].some((digit) => !ALPHABET.includes(digit))) {
    throw new Error('a recovery key is clr- and 56 letters and digits in groups of seven');
  }
  const key = fromDigits(plain.slice(0, KEY_DIGITS));
  if (recoveryKeyText(key).replace(/-/g, '') !== `clr${plain}`) {
    throw new Error('the recovery key is mistyped: its checksum, the last 4 characters, does not fit');
  }
  return key;
}

function checksum(key: Uint8Array): string {
  return toDigits(createHash('sha256').update(key).digest(), CHECK_DIGITS);
}

/** The first `count` digits of 5 bits. */
function toDigits(bytes: Uint8Array, count: number): string {
  const bits = Array.from(bytes, (byte) => byte.toString(2).padStart(8, '0'))
    .join('')
    .padEnd(count * 5, '0');
  const digit = (i: number) => ALPHABET.charAt(Number.parseInt(bits.slice(i * 5, i * 5 + 5), 2));
  return Array.from({ length: count }, (_, i) => digit(i)).join('');
}

function fromDigits(text: string): Buffer {
  const bits = [...text].map((digit) => ALPHABET.indexOf(digit).toString(2).padStart(5, '0')).join('');
  const byte = (i: number) => Number.parseInt(bits.slice(i * 8, i * 8 + 8), 2);
  return Buffer.from(Array.from({ length: KEY_BYTES }, (_, i) => byte(i)));
}
