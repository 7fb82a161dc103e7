/**
 * A key that the client keeps and sends with each request (SSE-C). It encrypts the bytes before
 * they are stored like all others, sealed or checked in frames: so they can be verified, moved and
 * restored without it. The record stored beside them has a salt, and an HMAC that identifies the
 * key.
 */
import { createCipheriv, createHmac, timingSafeEqual } from 'node:crypto';
import { AppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';

export const CUSTOMER_KEY_BYTES = 32;
const SALT_BYTES = 16;
const BLOCK_BYTES = 16;

/** Encrypts and decrypts: the counter mode is its own inverse. */
export type ByteCipher = (bytes: Uint8Array) => Buffer;

export class CustomerKey {
  readonly #key: Uint8Array;

  /** 32 bytes. */
  constructor(key: Uint8Array) {
    this.#key = key;
  }

  /** Creates a record, which is stored beside the bytes encrypted with the key. */
  record(): Buffer {
    const salt = randomSecret(SALT_BYTES);
    return Buffer.concat([salt, this.#check(salt)]);
  }

  /** True if the record was made with this key. */
  fits(record: Uint8Array): boolean {
    const check = record.subarray(SALT_BYTES);
    const own = this.#check(record.subarray(0, SALT_BYTES));
    return check.length === own.length && timingSafeEqual(check, own);
  }

  /** Cipher for bytes from `offset` on, in order. */
  cipher(record: Uint8Array, offset = 0): ByteCipher {
    const key = this.#derived('bytes', record.subarray(0, SALT_BYTES));
    // Each record has its own key, so the counter may begin at zero.
    const counter = Buffer.alloc(BLOCK_BYTES);
    counter.writeBigUInt64BE(BigInt(Math.floor(offset / BLOCK_BYTES)), BLOCK_BYTES - 8);
    const cipher = createCipheriv('aes-256-ctr', key, counter);
    cipher.update(Buffer.alloc(offset % BLOCK_BYTES));
    return (bytes) => cipher.update(bytes);
  }

  /** The key for ETags of bytes with that record: see etagKey of Upload. */
  etagKey(record: Uint8Array): Buffer {
    return this.#derived('etag', record.subarray(0, SALT_BYTES));
  }

  #check(salt: Uint8Array): Buffer {
    return this.#derived('check', salt);
  }

  #derived(purpose: string, salt: Uint8Array): Buffer {
    return createHmac('sha256', this.#key).update(`cloudlet sse-c ${purpose}\n`).update(salt).digest();
  }
}

/** The error for requests that need the client's key. */
export function customerKeyRequired(name: string): AppError {
  return new AppError('customer_key_required', `${name} is encrypted with a customer-provided key (SSE-C)`, {
    hint: 'Read the object over S3, with the headers x-amz-server-side-encryption-customer-*',
  });
}
