/** Random secrets of the process itself, generated once and stored sealed: for signing links and cursors. */
import { AppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { MasterKeys } from '../../platform/master-key.ts';
import { type Ages, Remembered } from '../ages.ts';
import type { Metadata } from '../metadata.ts';

const SECRET_BYTES = 32;

export class Secrets {
  readonly #metadata: Metadata;
  readonly #keys: MasterKeys;
  readonly #known: Remembered<string, Buffer>;

  constructor(deps: { readonly metadata: Metadata; readonly keys: MasterKeys; readonly ages: Ages }) {
    this.#metadata = deps.metadata;
    this.#keys = deps.keys;
    this.#known = new Remembered({ ages: deps.ages, read: (name) => this.#getOrCreate(name) });
  }

  /**
   * The 32 bytes of that name, generated on the first call ever. Throws AppError `data_corrupted` if they
   * cannot be unsealed.
   */
  async get(name: string): Promise<Buffer> {
    return this.#known.get(name);
  }

  /** Deletes the secret: the next get() creates a new one. */
  async forget(name: string): Promise<void> {
    await this.#metadata.commit([{ sql: 'DELETE FROM secrets WHERE name = ?', params: [name] }]);
    this.#known.forget(name);
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

  /** Stores the secret unless one with that name exists; returns the stored one. */
  async #add(name: string, sealed: Uint8Array): Promise<Uint8Array> {
    const sql = 'INSERT INTO secrets (name, sealed) VALUES (?, ?) ON CONFLICT (name) DO NOTHING';
    await this.#metadata.commit([{ sql, params: [name, sealed] }]);
    const stored = await this.#find(name);
    if (stored === undefined) throw new AppError('internal_error', 'A secret could not be stored');
    return stored;
  }
}
