/** The server's side of SCRAM-SHA-256 (RFC 5802, 7677), which proves knowledge of the password. */
import { timingSafeEqual } from 'node:crypto';
import { randomBase62 } from '../../../../platform/ids.ts';
import { hmac, type ScramKeys, sha256 } from '../../../scram-keys.ts';

const NONCE_CHARACTERS = 24;
/** Without channel binding; then the authorization identity, which MongoDB's drivers never send. */
const FIRST = /^([ny]),,(n=([^,]+),r=([!-+\--~]{1,256}))$/;
const FINAL = /^(c=([A-Za-z0-9+/=]+),r=([!-+\--~]+)),p=([A-Za-z0-9+/=]+)$/;

export interface ClientFirst {
  /** Channel binding flag of the client, which it must repeat. */
  readonly binding: string;
  readonly bare: string;
  readonly username: string;
  readonly nonce: string;
}

/** Null: the message is malformed. */
export function readClientFirst(payload: Uint8Array): ClientFirst | null {
  const match = FIRST.exec(Buffer.from(payload).toString('utf8'));
  if (match === null) return null;
  const [, flag, bare = '', name = '', nonce = ''] = match;
  const username = name.replaceAll('=2C', ',').replaceAll('=3D', '=');
  return { binding: `${flag},,`, bare, username, nonce };
}

export class ScramConversation {
  /** The server's first message. */
  readonly serverFirst: string;
  readonly #first: ClientFirst;
  readonly #nonce: string;
  readonly #keys: ScramKeys;

  constructor(first: ClientFirst, keys: ScramKeys) {
    this.#first = first;
    this.#keys = keys;
    this.#nonce = first.nonce + randomBase62(NONCE_CHARACTERS);
    this.serverFirst = `r=${this.#nonce},s=${keys.salt.toString('base64')},i=${keys.iterations}`;
  }

  /**
   * The server's final message, which proves knowledge of the password; null: the client's proof is wrong.
   */
  finish(payload: Uint8Array): string | null {
    const match = FINAL.exec(Buffer.from(payload).toString('utf8'));
    if (match === null) return null;
    const [, withoutProof = '', binding = '', nonce, proof = ''] = match;
    const isOurs = nonce === this.#nonce && fromBase64(binding).toString() === this.#first.binding;
    const { storedKey, serverKey } = this.#keys;
    const message = `${this.#first.bare},${this.serverFirst},${withoutProof}`;
    const signature = hmac(storedKey, message);
    const proven = fromBase64(proof);
    if (!isOurs || proven.length !== signature.length) return null;
    const clientKey = proven.map((byte, index) => byte ^ (signature[index] as number));
    if (!timingSafeEqual(sha256(Buffer.from(clientKey)), storedKey)) return null;
    return `v=${hmac(serverKey, message).toString('base64')}`;
  }
}

function fromBase64(text: string): Buffer {
  return Buffer.from(text, 'base64');
}
