/** SQL of recovery points. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

export const POINT_STATES = [
  'creating',
  'complete',
  'verified',
  'drilled',
  'failed',
  'cancelled',
  'damaged',
  'deleting',
] as const;
export type PointState = (typeof POINT_STATES)[number];

export interface PointRow {
  /** Row id. */
  readonly id: number;
  readonly point_id: string;
  readonly state: PointState;
  readonly reason: string | null;
  readonly target: string;
  readonly percent: number;
  readonly created_at: number;
  readonly completed_at: number | null;
  readonly verified_at: number | null;
  readonly size_bytes: number;
  readonly stored_bytes: number;
  /** JSON. */
  readonly contents: string;
  /** JSON. */
  readonly gaps: string;
  readonly manifest_sha256: string | null;
  readonly deletes_at: number | null;
}

const COLUMNS = `id, point_id, state, reason, target, percent, created_at, completed_at, verified_at, size_bytes,
  stored_bytes, contents, gaps, manifest_sha256, deletes_at`;
const KEY_TAKEN = 'recovery_key_taken_at ';
/** More than are made in the time that a point may be old. */
const SKIPPED_ACCOUNTS = 10_000;
const HOLD_MS = 10 * 60_000;

export class RecoveryStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(pointId: string): Awaitable<PointRow | undefined> {
    return this.#reads.get(`SELECT ${COLUMNS} FROM recovery_points WHERE point_id = ?`, pointId);
  }

  /** Oldest first, those after row id `after`. */
  list(after: number, limit: number): Awaitable<PointRow[]> {
    const sql = `SELECT ${COLUMNS} FROM recovery_points WHERE id > ? ORDER BY id LIMIT ?`;
    return this.#reads.all(sql, after, limit);
  }

  /** The newest whose pieces are all there, as far as is known. */
  newestSound(): Awaitable<PointRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM recovery_points WHERE state IN ('complete', 'verified', 'drilled')
       ORDER BY created_at DESC, id DESC LIMIT 1`,
    );
  }

  insert(point: Pick<PointRow, 'point_id' | 'target' | 'created_at'>): Statement {
    return {
      sql: `INSERT INTO recovery_points (point_id, state, target, created_at) VALUES (?, 'creating', ?, ?)`,
      params: [point.point_id, point.target, point.created_at],
    };
  }

  /** Replaces all that may change. */
  update(row: PointRow): Statement {
    return {
      sql: `UPDATE recovery_points SET state = ?, reason = ?, percent = ?, created_at = ?, completed_at = ?,
              verified_at = ?, size_bytes = ?, stored_bytes = ?, contents = ?, gaps = ?, manifest_sha256 = ?,
              deletes_at = ? WHERE id = ?`,
      params: [
        ...[row.state, row.reason, row.percent, row.created_at, row.completed_at, row.verified_at],
        ...[row.size_bytes, row.stored_bytes, row.contents, row.gaps, row.manifest_sha256],
        ...[row.deletes_at, row.id],
      ],
    };
  }

  /** Points that were being made when Cloudlet ended: nobody goes on with them. */
  failUnfinished(reason: string): Statement {
    const sql = `UPDATE recovery_points SET state = 'failed', reason = ? WHERE state = 'creating'`;
    return { sql, params: [reason] };
  }

  hold(pointId: string, now: number): Statement {
    return {
      sql: `INSERT INTO recovery_holds (point_id, renewed_at) VALUES (?, ?)
            ON CONFLICT (point_id) DO UPDATE SET renewed_at = excluded.renewed_at`,
      params: [pointId, now],
    };
  }

  endHolds(): Statement {
    return { sql: 'DELETE FROM recovery_holds', params: [] };
  }

  async isHeld(now: number): Promise<boolean> {
    const sql = 'SELECT 1 FROM recovery_holds WHERE renewed_at > ? LIMIT 1';
    return (await this.#reads.get(sql, now - HOLD_MS)) !== undefined;
  }

  /** Whether somebody has proved to have the recovery key of that repository. */
  async isKeyTaken(repositoryId: string): Promise<boolean> {
    const sql = 'SELECT 1 FROM settings WHERE name = ?';
    return (await this.#reads.get(sql, KEY_TAKEN + repositoryId)) !== undefined;
  }

  setKeyTaken(repositoryId: string, at: number): Statement {
    const sql = 'INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING';
    return { sql, params: [KEY_TAKEN + repositoryId, String(at)] };
  }

  /** Names of the files of all blobs that have one, in their order, those after `after`. */
  async blobs(after: string, limit: number): Promise<string[]> {
    const rows = await this.#reads.all<{ name: string }>(
      'SELECT name FROM blobs WHERE name > ? AND refs > 0 ORDER BY name LIMIT ?',
      after,
      limit,
    );
    return rows.map(({ name }) => name);
  }

  async sumOfBlobs(): Promise<number> {
    const row = await this.#reads.get<{ bytes: number | null }>(
      'SELECT sum(size_bytes) AS bytes FROM blobs WHERE name IS NOT NULL',
    );
    return row?.bytes ?? 0;
  }

  /**
   * What must be so before a restored cloud starts for the first time. Sessions are over; nobody is told of
   * what happened before; machines do not run, and the time in between is not charged; numbers of accounts
   * that were made after the point are not given again. Databases are loaded from their dumps, which `dumps`
   * has the bytes of, by id (databases/refill.ts).
   */
  afterRestore(now: number, dumps: ReadonlyMap<string, number>): Statement[] {
    const restored = 'It ran when the recovery point was made';
    return [
      'DELETE FROM sessions',
      'DELETE FROM recovery_holds',
      `UPDATE webhook_deliveries SET state = 'failed', next_at = NULL, reason = 'The cloud was restored'
       WHERE state = 'pending'`,
      'UPDATE webhook_events SET is_pending = 0 WHERE is_pending = 1',
      `UPDATE sqlite_sequence SET seq = seq + ${SKIPPED_ACCOUNTS} WHERE name = 'accounts'`,
    ]
      .map((sql): Statement => ({ sql, params: [] }))
      .concat(
        { sql: `UPDATE steady_clock SET boot_id = 'restored', wall_ms = ?`, params: [now] },
        {
          sql: `UPDATE vms SET state = 'stopping', desired_state = 'stopped', reason_code = 'restored',
                  reason_message = ?, generation = generation + 1
                WHERE state IN ('starting', 'running', 'stopping')`,
          params: [restored],
        },
        ...databasesAfterRestore(now, dumps),
      );
  }

  /** What a point of these reads holds, for its owner to compare. */
  async contents(): Promise<Record<string, number>> {
    const row = await this.#reads.get<Record<string, number>>(
      `SELECT (SELECT count(*) FROM accounts WHERE closed_at IS NULL) AS accounts,
         (SELECT count(*) FROM buckets) AS buckets, (SELECT count(*) FROM objects) AS objects,
         (SELECT count(*) FROM versions) AS versions, (SELECT count(*) FROM vms) AS vms,
         (SELECT count(*) FROM databases WHERE state <> 'deleting') AS databases`,
    );
    return { ...row };
  }

  /** Number of the last migration. */
  async schema(): Promise<number> {
    return (
      (await this.#reads.get<{ number: number }>('SELECT max(number) AS number FROM migrations'))?.number ?? 0
    );
  }
}

/** Engines have none of them yet. */
function databasesAfterRestore(now: number, dumps: ReadonlyMap<string, number>): Statement[] {
  const error = `UPDATE databases SET state = 'error', reason_code = ?, reason_message = ?, state_changed_at = ?`;
  return [
    {
      sql: `UPDATE databases SET is_dropped = 1, kept_dump_bytes =
              (SELECT value FROM json_each(?) WHERE key = database_id)
            WHERE state <> 'creating'`,
      params: [JSON.stringify(Object.fromEntries(dumps))],
    },
    {
      sql: `${error} WHERE state IN ('ready', 'read_only', 'error') AND kept_dump_bytes IS NOT NULL`,
      params: ['restoring', 'It is being loaded from the recovery point', now],
    },
    {
      sql: `${error}, applied = generation
            WHERE state IN ('ready', 'read_only', 'suspended', 'error') AND kept_dump_bytes IS NULL`,
      params: [
        'not_in_point',
        'It could not be read when the recovery point was made: delete it, or restore an older point',
        now,
      ],
    },
    {
      sql: `UPDATE databases SET generation = generation + 1
            WHERE state IN ('error', 'suspended') AND kept_dump_bytes IS NOT NULL`,
      params: [],
    },
  ];
}
