/** Random secrets of the process itself, generated once and stored sealed: for signing links and cursors. */
import { AppError } from '../platform/errors.ts';
import { randomSecret } from '../platform/ids.ts';
import type { MasterKeys } from '../platform/master-key.ts';
import type { Metadata } from './metadata.ts';

const SECRET_BYTES = 32;

export class Secrets {
  readonly #metadata: Metadata;
  readonly #keys: MasterKeys;
  readonly #known = new Map<string, Promise<Buffer>>();

  constructor(deps: { readonly metadata: Metadata; readonly keys: MasterKeys }) {
    this.#metadata = deps.metadata;
    this.#keys = deps.keys;
  }

  /**
   * The 32 bytes of that name, generated on the first call ever. Throws AppError `data_corrupted` if they
   * cannot be unsealed.
   */
  get(name: string): Promise<Buffer> {
    let secret = this.#known.get(name);
    if (secret === undefined) {
      secret = this.#getOrCreate(name);
      this.#known.set(name, secret);
      // A failure is not cached: the disk may have space again at the next call.
      secret.catch(() => this.#known.delete(name));
    }
    return secret;
  }

  /** Deletes the secret: the next get() generates a new one. */
  async forget(name: string): Promise<void> {
    await this.#metadata.commit([{ sql: 'DELETE FROM secrets WHERE name = ?', params: [name] }]);
    this.#known.delete(name);
  }

  async #getOrCreate(name: string): Promise<Buffer> {
    const context = `secret:${name}`;
    const sealed =
      (await this.#find(name)) ??
      (await this.#add(name, this.#keys.seal(randomSecret(SECRET_BYTES), context)));
    return this.#keys.unseal(sealed, context);
  }

  async #find(name: string): Promise<Uint8Array | undefined> {
    const sql = 'SELECT sealed FROM secrets WHERE name = ?';
    return (await this.#metadata.get<{ sealed: Uint8Array }>(sql, name))?.sealed;
  }

  /** Stores the secret unless one of that name was stored meanwhile; returns the stored one. */
  async #add(name: string, sealed: Uint8Array): Promise<Uint8Array> {
    const sql = 'INSERT INTO secrets (name, sealed) VALUES (?, ?) ON CONFLICT (name) DO NOTHING';
    await this.#metadata.commit([{ sql, params: [name, sealed] }]);
    const stored = await this.#find(name);
    if (stored === undefined) throw new AppError('internal_error', 'A secret could not be stored');
    return stored;
  }
}
