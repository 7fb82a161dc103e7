/** SQL of the cloud's identity. */
import type { IdentityMark } from '../platform/identity-mark.ts';
import type { Awaitable, Metadata } from './metadata.ts';

export class IdentityStore {
  readonly #metadata: Metadata;

  constructor(metadata: Metadata) {
    this.#metadata = metadata;
  }

  find(): Awaitable<IdentityMark | undefined> {
    return this.#metadata.get<IdentityMark>('SELECT cloud_id, starts FROM identity WHERE id = 1');
  }

  /** True when a cloud was started on this database, as one of a version without identity may have been. */
  async wasUsed(): Promise<boolean> {
    return (await this.#metadata.get('SELECT 1 FROM secrets LIMIT 1')) !== undefined;
  }

  async write({ cloud_id, starts }: IdentityMark): Promise<void> {
    const sql = `INSERT INTO identity (id, cloud_id, starts) VALUES (1, ?, ?)
                 ON CONFLICT (id) DO UPDATE SET starts = excluded.starts`;
    await this.#metadata.commit([{ sql, params: [cloud_id, starts] }]);
  }
}
