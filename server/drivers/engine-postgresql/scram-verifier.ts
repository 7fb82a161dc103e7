/** What PostgreSQL keeps in the place of a password. We compute it, so that no password reaches its log. */
import { createHash, createHmac, pbkdf2 } from 'node:crypto';
import { promisify } from 'node:util';
import { randomSecret } from '../../ids.ts';

const derive = promisify(pbkdf2);
/** As PostgreSQL's own; our passwords have 190 bits and need no slowness. */
const ITERATIONS = 4096;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

/** RFC 5803, in PostgreSQL's form. The password is ASCII. */
export async function scramVerifier(password: string, salt = randomSecret(SALT_BYTES)): Promise<string> {
  const salted = await derive(password, salt, ITERATIONS, KEY_BYTES, 'sha256');
  const storedKey = createHash('sha256').update(hmac(salted, 'Client Key')).digest('base64');
  const serverKey = hmac(salted, 'Server Key').toString('base64');
  return `SCRAM-SHA-256$${ITERATIONS}:${salt.toString('base64')}$${storedKey}:${serverKey}`;
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
