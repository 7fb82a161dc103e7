/**
 * A digest that requires the key: equal bytes have equal digests, and it reveals nothing else. GMAC hashes at
 * memory speed; its nonce is constant, so its tag is only passed to the HMAC.
 */
import { createCipheriv, createHmac } from 'node:crypto';

const NONCE = Buffer.alloc(12);

export class KeyedDigest {
  readonly #key: Uint8Array;
  readonly #gmac: ReturnType<typeof gmacOf>;
  #bytes = 0;

  /** 32 bytes, used only here. */
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
