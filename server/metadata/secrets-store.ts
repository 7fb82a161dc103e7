/** SQL of the table of secrets. */
import { AppError } from '../platform/errors.ts';
import type { Metadata } from './metadata.ts';

export class SecretsStore {
  readonly #metadata: Metadata;

  constructor(deps: { readonly metadata: Metadata }) {
    this.#metadata = deps.metadata;
  }

  async find(name: string): Promise<Uint8Array | undefined> {
    const sql = 'SELECT sealed FROM secrets WHERE name = ?';
    return (await this.#metadata.get<{ sealed: Uint8Array }>(sql, name))?.sealed;
  }

  /** Stores the secret unless one of that name was stored meanwhile; returns the one that stays. */
  async add(name: string, sealed: Uint8Array): Promise<Uint8Array> {
    const sql = 'INSERT INTO secrets (name, sealed) VALUES (?, ?) ON CONFLICT (name) DO NOTHING';
    await this.#metadata.commit([{ sql, params: [name, sealed] }]);
    const stored = await this.find(name);
    if (stored === undefined) throw new AppError('internal_error', 'A secret could not be stored');
    return stored;
  }

  /** Fine when there is none. */
  async remove(name: string): Promise<void> {
    await this.#metadata.commit([{ sql: 'DELETE FROM secrets WHERE name = ?', params: [name] }]);
  }
}
