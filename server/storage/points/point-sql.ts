/** SQL for restoring objects from recovery points, limited to the owner's objects. */
import type { Awaitable, Reads } from '../../metadata/metadata.ts';

export class PointSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  account(id: number): Awaitable<{ created_at: number; is_active: number } | undefined> {
    return this.#reads.get('SELECT created_at, is_active FROM accounts WHERE id = ?', id);
  }

  /** True if the bytes of a version, or of one of its parts, are known to be damaged. `blob`: row id. */
  async isDamaged(blob: number): Promise<boolean> {
    const sql = `SELECT 1 AS found FROM blobs WHERE damaged_at IS NOT NULL AND (id = ? OR id IN (
                   SELECT p.blob FROM blobs b JOIN upload_parts p ON p.upload = b.upload WHERE b.id = ?))`;
    return (await this.#reads.get(sql, blob, blob)) !== undefined;
  }
}
