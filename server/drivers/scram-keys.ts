/**
 * SCRAM verifiers, stored by servers instead of passwords. Computed here, so that no password reaches an
 * engine.
 */
import { createHash, createHmac, pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import { randomSecret } from '../platform/ids.ts';

const derive = promisify(pbkdf2);
/** The minimum that drivers accept; our passwords have 190 bits and need no slow hash. */
const ITERATIONS = 4096;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

export interface ScramKeys {
  readonly iterations: number;
  readonly salt: Buffer;
  readonly storedKey: Buffer;
  readonly serverKey: Buffer;
}

/** Keys for SCRAM-SHA-256 (RFC 5802, 7677). The password is ASCII. */
export async function scramKeys(password: string): Promise<ScramKeys> {
  const salt = randomSecret(SALT_BYTES);
  const salted = await derive(password, salt, ITERATIONS, KEY_BYTES, 'sha256');
  const storedKey = sha256(hmac(salted, 'Client Key'));
  return { iterations: ITERATIONS, salt, storedKey, serverKey: hmac(salted, 'Server Key') };
}

export function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}

export function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

/** The password is ASCII. */
export async function scramVerifier(password: string): Promise<string> {
  const { iterations, ...keys } = await scramKeys(password);
  const [salt, storedKey, serverKey] = [keys.salt, keys.storedKey, keys.serverKey].map((bytes) =>
    bytes.toString('base64'),
  );
  return `SCRAM-SHA-256$${iterations}:${salt}$${storedKey}:${serverKey}`;
}
