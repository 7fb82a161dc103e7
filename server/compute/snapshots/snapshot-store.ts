/** SQL of snapshots of machines. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export interface SnapshotRow {
  readonly snapshot_id: string;
  readonly vm_id: string;
  readonly name: string;
  readonly size_bytes: number;
  /** ms since 1970. */
  readonly created_at: number;
}

const COLUMNS = 'snapshot_id, vm_id, name, size_bytes, created_at';

export class SnapshotStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Oldest first. */
  listOf(vmId: string): Awaitable<SnapshotRow[]> {
    return this.#reads.all(`SELECT ${COLUMNS} FROM vm_snapshots WHERE vm_id = ? ORDER BY id`, vmId);
  }

  insert({ snapshot_id, vm_id, name, size_bytes, created_at }: SnapshotRow): Statement {
    return {
      sql: `INSERT INTO vm_snapshots (${COLUMNS}) VALUES (?, ?, ?, ?, ?)`,
      params: [snapshot_id, vm_id, name, size_bytes, created_at],
    };
  }

  delete(snapshotId: string): Statement {
    return { sql: 'DELETE FROM vm_snapshots WHERE snapshot_id = ?', params: [snapshotId] };
  }
}
