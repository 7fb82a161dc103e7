/**
 * A digest that only who has the key can compute: equal bytes have equal ones, and it says nothing else. GMAC
 * hashes at the speed of memory; its nonce is always the same, so nobody but the HMAC sees its tag.
 */
import { createCipheriv, createHmac } from 'node:crypto';

const NONCE = Buffer.alloc(12);

export class KeyedDigest {
  readonly #key: Uint8Array;
  readonly #gmac: ReturnType<typeof gmacOf>;
  #bytes = 0;

  /** 32 bytes, used for nothing else. */
  constructor(key: Uint8Array) {
    this.#key = key;
    this.#gmac = gmacOf(createHmac('sha256', key).update('gmac').digest());
  }

  update(bytes: Uint8Array): void {
    this.#bytes += bytes.length;
    // GMAC does not accept empty additional data.
    if (bytes.length > 0) this.#gmac.setAAD(bytes);
  }

  /** 32 characters, hex. Once. */
  digest(): string {
    this.#gmac.final();
    const tag = this.#gmac.getAuthTag();
    return createHmac('sha256', this.#key).update(`${this.#bytes}\n`).update(tag).digest('hex').slice(0, 32);
  }
}

const gmacOf = (key: Uint8Array) => createCipheriv('aes-256-gcm', key, NONCE);
