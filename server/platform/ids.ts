/** The only caller of randomness. Ids are `<prefix>-` + 26 characters of lower-case base32. */
import { randomBytes, randomFillSync, randomInt, randomUUID } from 'node:crypto';
import type { Clock } from './clock.ts';

export type IdPrefix =
  | 'obj'
  | 'ver'
  | 'upl'
  | 'vm'
  | 'port'
  | 'db'
  | 'drp'
  | 'img'
  | 'op'
  | 'key'
  | 'inv'
  | 'mail'
  | 'ses'
  | 'blob'
  | 'req'
  | 'whk'
  | 'cld'
  | 'nod'
  | 'evt'
  | 'dlv'
  | 'sel'
  | 'shr'
  | 'qry'
  | 'snp';

// Crockford's alphabet in lower case: its ASCII order is its numeric order, so ids sort by time.
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

const pool = Buffer.alloc(4096);
let poolUsed = pool.length;

/**
 * 10 random bytes as 16 base32 characters, drawn from a pool because a call to the CSPRNG costs more than
 * the id.
 */
function random80Bits(): string {
  if (poolUsed + 16 > pool.length) {
    randomFillSync(pool);
    poolUsed = 0;
  }
  let text = '';
  for (let i = 0; i < 16; i++) text += ALPHABET.charAt((pool[poolUsed++] as number) & 31);
  return text;
}

function encodeTime(ms: number): string {
  let text = '';
  let rest = ms;
  for (let i = 0; i < 10; i++) {
    text = ALPHABET.charAt(rest % 32) + text;
    rest = Math.floor(rest / 32);
  }
  return text;
}

let lastMs = -1;
let lastMsText = '';

/** A new id: 10 characters of time (ms), then 80 random bits: sortable by creation, not guessable. */
export function newId(prefix: IdPrefix, clock: Pick<Clock, 'now'>): string {
  const ms = clock.now();
  if (ms !== lastMs) {
    lastMsText = encodeTime(ms);
    lastMs = ms;
  }
  return `${prefix}-${lastMsText}${random80Bits()}`;
}

/** True if `text` has the form of an id with that prefix. Does not check whether it exists. */
export function isId(prefix: IdPrefix, text: string): boolean {
  return (
    text.length === prefix.length + 27 &&
    text.startsWith(`${prefix}-`) &&
    /^[0-9a-hjkmnp-tv-z]{26}$/.test(text.slice(-26))
  );
}

/** Creation time of an id, ms since 1970, from the id itself. */
export function idTime(id: string): number {
  let ms = 0;
  for (const digit of id.slice(id.indexOf('-') + 1).slice(0, 10)) ms = ms * 32 + ALPHABET.indexOf(digit);
  return ms;
}

/** RFC 9562, version 4. */
export function newUuid(): string {
  return randomUUID();
}

/**
 * `52:xx:xx:xx:xx:xx`, a locally administered address with 40 random bits: the 24 of QEMU's own `52:54:00`
 * clash at 1,000 machines.
 */
export function newMac(): string {
  return `52:${(randomBytes(5).toString('hex').match(/../g) ?? []).join(':')}`;
}

/** `length` characters of base62 from the CSPRNG, without modulo bias (bytes ≥ 248 are drawn again). */
export function randomBase62(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      if (byte < 248 && text.length < length) text += BASE62.charAt(byte % 62);
    }
  }
  return text;
}

/** `length` characters of lower-case base32 from the CSPRNG: an opaque name. */
export function randomName(length: number): string {
  return Array.from(randomBytes(length), (byte) => ALPHABET.charAt(byte & 31)).join('');
}

/** A uniformly random integer from 0 to `count` - 1. */
export function randomBelow(count: number): number {
  return randomInt(count);
}

/** 64 hex digits from the CSPRNG: a public id of an account, which reveals nothing. */
export function newCanonicalId(): string {
  return randomBytes(32).toString('hex');
}

/** `count` bytes from the CSPRNG. */
export function randomSecret(count: number): Buffer {
  return randomBytes(count);
}
