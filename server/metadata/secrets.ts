/** Random secrets that the process makes for itself once and keeps, sealed: for signing links and cursors. */
import { randomSecret } from '../platform/ids.ts';
import type { MasterKeys } from '../platform/master-key.ts';
import type { Metadata } from './metadata.ts';
import { SecretsStore } from './secrets-store.ts';

const SECRET_BYTES = 32;

export class Secrets {
  readonly #store: SecretsStore;
  readonly #keys: MasterKeys;
  readonly #known = new Map<string, Promise<Buffer>>();

  constructor(deps: { readonly metadata: Metadata; readonly keys: MasterKeys }) {
    this.#store = new SecretsStore(deps);
    this.#keys = deps.keys;
  }

  /**
   * The 32 bytes of that name, made at the first call ever. Throws AppError `data_corrupted` when they do
   * not open.
   */
  get(name: string): Promise<Buffer> {
    let secret = this.#known.get(name);
    if (secret === undefined) {
      secret = this.#getOrCreate(name);
      this.#known.set(name, secret);
      // A failure is not remembered: the disk may have room again at the next call.
      secret.catch(() => this.#known.delete(name));
    }
    return secret;
  }

  /** The next get() makes another one. */
  async forget(name: string): Promise<void> {
    await this.#store.remove(name);
    this.#known.delete(name);
  }

  async #getOrCreate(name: string): Promise<Buffer> {
    const context = `secret:${name}`;
    const sealed =
      (await this.#store.find(name)) ??
      (await this.#store.add(name, this.#keys.seal(randomSecret(SECRET_BYTES), context)));
    return this.#keys.unseal(sealed, context);
  }
}
