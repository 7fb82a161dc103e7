/** SQL of drills: their results in the live cloud, and the rows that they compare in the restored cloud. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';
import type { DrillRecord } from './drill.ts';

const SLOT = 'recovery_slot ';

export class DrillStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /**
   * Stores the result of a drill. A point that passed is `drilled` and was read completely; one
   * that failed is no longer `drilled`. Changes nothing if the point was deleted in the meantime.
   */
  record(pointId: string, drill: DrillRecord, now: number): Statement {
    const { result } = drill;
    const passed = Number(result === 'passed');
    return {
      sql: `UPDATE recovery_points SET drill = ?,
              drilled_at = CASE WHEN ? THEN ? ELSE drilled_at END,
              verified_at = CASE WHEN ? THEN ? ELSE verified_at END,
              state = CASE WHEN ? THEN 'drilled' WHEN ? AND state = 'drilled' THEN 'complete' ELSE state END,
              reason = CASE WHEN ? THEN NULL ELSE reason END
            WHERE point_id = ? AND state IN ('complete', 'verified', 'drilled', 'damaged')`,
      params: [
        ...[JSON.stringify(drill), passed, now, passed, now, passed],
        ...[Number(result === 'failed'), passed, pointId],
      ],
      tells: { accountId: null, kind: 'recovery_point', id: pointId },
    };
  }

  /**
   * Digest of the repository's key slot when the recovery key last opened it; null: it never did in
   * this cloud.
   */
  async provenSlot(repositoryId: string): Promise<string | null> {
    const sql = 'SELECT value FROM settings WHERE name = ?';
    return (await this.#reads.get<{ value: string }>(sql, SLOT + repositoryId))?.value ?? null;
  }

  setProvenSlot(repositoryId: string, digest: string): Statement {
    const sql = `INSERT INTO settings (name, value) VALUES (?, ?)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
    return { sql, params: [SLOT + repositoryId, digest] };
  }

  /**
   * Machines whose disks a point may contain: recently running ones first, then the smallest; at
   * most `limit`.
   */
  machines(limit: number): Awaitable<RestoredMachine[]> {
    return this.#reads.all(
      `SELECT vm_id, name, image_id, memory_mb, CASE WHEN state IN ('running', 'starting') THEN 1 ELSE 0 END AS ran
       FROM vms WHERE state NOT IN ('created', 'deleting') ORDER BY ran DESC, disk_gb, id LIMIT ?`,
      limit,
    );
  }
}

export interface RestoredMachine {
  readonly vm_id: string;
  readonly name: string;
  readonly image_id: string;
  readonly memory_mb: number;
  /** 0 or 1. */
  readonly ran: number;
}
