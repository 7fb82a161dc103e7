/** SQL of recovery points. */
import type { Awaitable, Reads, ResourceChange, Statement } from '../metadata/metadata.ts';
import type { Verdict } from './drill/verification.ts';
import { RecoverySummaryStore } from './summary-store.ts';

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
/** Public state: `partial` for an intact point with gaps. */
export type ShownState = PointState | 'partial';

export interface PointRow {
  /** Row id. */
  readonly id: number;
  readonly point_id: string;
  readonly state: PointState;
  readonly reason: string | null;
  readonly target: string;
  readonly percent: number;
  readonly created_at: number;
  /** When it was due; null: not made by the schedule. */
  readonly scheduled_at: number | null;
  readonly completed_at: number | null;
  readonly verified_at: number | null;
  /** Time of the last drill that passed. */
  readonly drilled_at: number | null;
  /** JSON: DrillRecord of the last drill. */
  readonly drill: string | null;
  readonly size_bytes: number;
  readonly stored_bytes: number;
  /** JSON. */
  readonly contents: string;
  /** JSON. */
  readonly gaps: string;
  readonly manifest_sha256: string | null;
  readonly deletes_at: number | null;
  /** JSON: DamagedFile[], only the first ones. */
  readonly damage: string;
  readonly damaged_files: number;
  /** The state that undelete restores. */
  readonly state_before: PointState | null;
  readonly grace_left_ms: number | null;
}

type NewPoint = Pick<PointRow, 'point_id' | 'target' | 'created_at' | 'scheduled_at' | 'contents'>;

const COLUMNS = `id, point_id, state, reason, target, percent, created_at, completed_at, verified_at, drilled_at, drill, size_bytes,
  stored_bytes, contents, gaps, manifest_sha256, deletes_at, damage, damaged_files,
  state_before, grace_left_ms, scheduled_at`;
/** States of points with a manifest, as far as known. */
export const SOUND: readonly PointState[] = ['complete', 'verified', 'drilled'];
export const LASTING: readonly PointState[] = [...SOUND, 'damaged'];
export const DELETABLE: readonly PointState[] = [...LASTING, 'failed', 'cancelled'];
const IS_LASTING = `state IN ('complete', 'verified', 'drilled', 'damaged')`;
const TOLD_ALARMS = 'recovery_alarms_told';
const KEY_TAKEN = 'recovery_key_taken_at ';
/** Name of the secret that identifies this cloud among the writers of a target. */
export const WRITER = 'recovery-writer';
/** Name of the secret that is kept until an administrator has confirmed having the recovery key. */
export const RECOVERY_KEY = 'recovery-key';
const HOLD_MS = 10 * 60_000;

/** A row as insert() creates it. */
export function newRow(point: NewPoint): PointRow {
  return {
    ...point,
    id: 0,
    state: 'creating',
    reason: null,
    percent: 0,
    completed_at: null,
    verified_at: null,
    drilled_at: null,
    drill: null,
    size_bytes: 0,
    stored_bytes: 0,
    gaps: '[]',
    manifest_sha256: null,
    deletes_at: null,
    damage: '[]',
    damaged_files: 0,
    state_before: null,
    grace_left_ms: null,
  };
}

export class RecoveryStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(pointId: string): Awaitable<PointRow | undefined> {
    return this.#reads.get(`SELECT ${COLUMNS} FROM recovery_points WHERE point_id = ?`, pointId);
  }

  /** Oldest first, after row id `after`. */
  list(after: number, limit: number): Awaitable<PointRow[]> {
    const sql = `SELECT ${COLUMNS} FROM recovery_points WHERE id > ? ORDER BY id LIMIT ?`;
    return this.#reads.all(sql, after, limit);
  }

  listAt(target: string): Awaitable<PointRow[]> {
    return this.#reads.all(`SELECT ${COLUMNS} FROM recovery_points WHERE target = ? ORDER BY id`, target);
  }

  /** The newest point in that target whose pieces all exist, as far as known. */
  newestSound(target: string): Awaitable<PointRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM recovery_points WHERE target = ? AND state IN ('complete', 'verified', 'drilled')
       ORDER BY created_at DESC, id DESC LIMIT 1`,
      target,
    );
  }

  /** True for the newest point in that target, damaged or not: archived logs are read with it. */
  async isNewest(target: string, pointId: string): Promise<boolean> {
    const row = await this.#reads.get<{ point_id: string }>(
      `SELECT point_id FROM recovery_points WHERE target = ? AND ${IS_LASTING} ORDER BY created_at DESC, id DESC LIMIT 1`,
      target,
    );
    return row?.point_id === pointId;
  }

  /** The point called `latest`: the newest complete one, else a partial one, else a damaged one. */
  latest(target: string): Awaitable<PointRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM recovery_points WHERE target = ? AND ${IS_LASTING}
       ORDER BY CASE WHEN state = 'damaged' THEN 2 WHEN gaps = '[]' THEN 0 ELSE 1 END, created_at DESC, id DESC
       LIMIT 1`,
      target,
    );
  }

  /** Codes of the alarms sent to webhooks. */
  async visibleAlarms(): Promise<string[]> {
    const sql = 'SELECT value FROM settings WHERE name = ?';
    const row = await this.#reads.get<{ value: string }>(sql, TOLD_ALARMS);
    return row === undefined ? [] : (JSON.parse(row.value) as string[]);
  }

  setVisibleAlarms(codes: readonly string[]): Statement {
    const sql = `INSERT INTO settings (name, value) VALUES (?, ?)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
    return { sql, params: [TOLD_ALARMS, JSON.stringify(codes)] };
  }

  /** Damaged files found by verifications, of points in the target and of archived logs. */
  async damagedFiles(target: string): Promise<string[]> {
    const rows = await this.#reads.all<{ file: string }>(
      `SELECT DISTINCT json_extract(damaged.value, '$.file') AS file FROM recovery_points, json_each(damage) AS damaged
       WHERE target = ?`,
      target,
    );
    const logs = await new RecoverySummaryStore(this.#reads).logs();
    return [...rows, ...(logs?.damage ?? [])].map(({ file }) => file);
  }

  /** Deleted points whose grace period is over. */
  listDue(): Awaitable<PointRow[]> {
    return this.#reads.all(
      `SELECT ${COLUMNS} FROM recovery_points WHERE state = 'deleting' AND grace_left_ms <= 0 ORDER BY id`,
    );
  }

  insert({ point_id, target, created_at, scheduled_at, contents }: NewPoint): Statement {
    return {
      sql: `INSERT INTO recovery_points (point_id, state, target, created_at, scheduled_at, contents)
            VALUES (?, 'creating', ?, ?, ?, ?)`,
      params: [point_id, target, created_at, scheduled_at, contents],
      tells: tellsOf(point_id),
    };
  }

  /** Inserts a point found in the target. */
  insertWhole(row: PointRow): Statement {
    return {
      sql: `INSERT INTO recovery_points (point_id, state, reason, target, percent, created_at, completed_at,
              size_bytes, contents, gaps, manifest_sha256, damage, damaged_files, scheduled_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [
        ...[row.point_id, row.state, row.reason, row.target, row.percent, row.created_at, row.completed_at],
        ...[row.size_bytes, row.contents, row.gaps, row.manifest_sha256, row.damage, row.damaged_files],
        row.scheduled_at,
      ],
    };
  }

  /** Updates all mutable columns. */
  update(row: PointRow): Statement {
    return {
      sql: `UPDATE recovery_points SET state = ?, reason = ?, percent = ?, created_at = ?, completed_at = ?,
              verified_at = ?, size_bytes = ?, stored_bytes = ?, contents = ?, gaps = ?, manifest_sha256 = ?,
              deletes_at = ?, damage = ?, damaged_files = ? WHERE id = ?`,
      params: [
        ...[row.state, row.reason, row.percent, row.created_at, row.completed_at, row.verified_at],
        ...[row.size_bytes, row.stored_bytes, row.contents, row.gaps, row.manifest_sha256],
        ...[row.deletes_at, row.damage, row.damaged_files, row.id],
      ],
      tells: tellsOf(row.point_id),
    };
  }

  /** Stores the result of a verification; changes nothing if the point was deleted. */
  setVerdict(pointId: string, verdict: Verdict, now: number): Statement {
    const { damagedFiles: count } = verdict;
    const reason = `${count} ${count === 1 ? 'file' : 'files'} in the target are missing or damaged`;
    const isSound = count === 0;
    return {
      sql: `UPDATE recovery_points SET reason = ?, damage = ?, damaged_files = ?,
              verified_at = CASE WHEN ? THEN ? ELSE verified_at END,
              state = CASE WHEN NOT ? THEN 'damaged' WHEN state = 'drilled' THEN state ELSE 'verified' END
            WHERE point_id = ? AND ${IS_LASTING}`,
      params: [
        ...[isSound ? null : reason, JSON.stringify(verdict.damage), count],
        ...[Number(isSound), now, Number(isSound), pointId],
      ],
      tells: tellsOf(pointId),
    };
  }

  /** Stores why the verification failed; the state stays. */
  setReason(pointId: string, reason: string): Statement {
    const sql = `UPDATE recovery_points SET reason = ? WHERE point_id = ? AND ${IS_LASTING}`;
    return { sql, params: [reason, pointId] };
  }

  setDamaged(
    pointId: string,
    { reason, damage }: { readonly reason: string; readonly damage: Verdict['damage'] },
  ): Statement {
    return {
      sql: `UPDATE recovery_points SET state = 'damaged', reason = ?, damage = ?, damaged_files = ?
            WHERE point_id = ? AND ${IS_LASTING}`,
      params: [reason, JSON.stringify(damage), damage.length, pointId],
      tells: tellsOf(pointId),
    };
  }

  /** Changes nothing if its state has changed since. */
  setDeleting(
    { point_id, state }: Pick<PointRow, 'point_id' | 'state'>,
    { graceMs, deletesAt }: { readonly graceMs: number; readonly deletesAt: number },
  ): Statement {
    return {
      sql: `UPDATE recovery_points SET state = 'deleting', state_before = state, grace_left_ms = ?, deletes_at = ?
            WHERE point_id = ? AND state = ?`,
      params: [graceMs, deletesAt, point_id, state],
      tells: tellsOf(point_id),
    };
  }

  /**
   * Changes nothing if it is not deleted, or its grace period is over. The keep rules no longer
   * remove it, because somebody wants it.
   */
  setUndeleted({ point_id }: Pick<PointRow, 'point_id'>): Statement {
    return {
      sql: `UPDATE recovery_points SET state = state_before, state_before = NULL, grace_left_ms = NULL,
              deletes_at = NULL, scheduled_at = NULL
            WHERE point_id = ? AND state = 'deleting' AND state_before IS NOT NULL AND grace_left_ms > 0`,
      params: [point_id],
      tells: tellsOf(point_id),
    };
  }

  /** Subtracts the elapsed time from the grace periods of deleted points. */
  countGrace(passedMs: number, now: number): Statement {
    const left = 'CASE WHEN grace_left_ms > ? THEN grace_left_ms - ? ELSE 0 END';
    const passed = Math.round(passedMs);
    return {
      sql: `UPDATE recovery_points SET grace_left_ms = ${left}, deletes_at = ? + ${left}
            WHERE state = 'deleting' AND grace_left_ms > 0`,
      params: [passed, passed, now, passed, passed],
    };
  }

  remove({ point_id }: Pick<PointRow, 'point_id'>): Statement {
    const sql = 'DELETE FROM recovery_points WHERE point_id = ?';
    return { sql, params: [point_id], tells: tellsOf(point_id) };
  }

  /** Removes points of other targets from the list. */
  removeElsewhere(target: string): Statement {
    return { sql: 'DELETE FROM recovery_points WHERE target <> ?', params: [target] };
  }

  /** Fails the points whose creation was interrupted by the end of Cloudlet. */
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

  /** Whether the recovery key of that repository is confirmed. */
  async isKeyTaken(repositoryId: string): Promise<boolean> {
    const sql = 'SELECT 1 FROM settings WHERE name = ?';
    return (await this.#reads.get(sql, KEY_TAKEN + repositoryId)) !== undefined;
  }

  setKeyTaken(repositoryId: string, at: number): Statement {
    const sql = 'INSERT INTO settings (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING';
    return { sql, params: [KEY_TAKEN + repositoryId, String(at)] };
  }

  /** File names of all referenced blobs, in order, after `after`. */
  async blobs(after: string, limit: number): Promise<string[]> {
    const rows = await this.#reads.all<{ name: string }>(
      'SELECT name FROM blobs WHERE name > ? AND refs > 0 ORDER BY name LIMIT ?',
      after,
      limit,
    );
    return rows.map(({ name }) => name);
  }

  /** Bytes of all files of a point except the metadata; databases count their size in the engine. */
  async sumOfBytes(): Promise<number> {
    const row = await this.#reads.get<{ bytes: number }>(
      `SELECT coalesce((SELECT sum(size_bytes) FROM blobs WHERE name IS NOT NULL AND refs > 0), 0)
         + coalesce((SELECT sum(disk_gb) FROM vms), 0) * 1073741824
         + coalesce((SELECT sum(size_bytes) FROM images), 0)
         + coalesce((SELECT sum(size_bytes) FROM databases), 0) AS bytes`,
    );
    return row?.bytes ?? 0;
  }

  /** Number of resources in the snapshot, for the operator to compare. */
  async contents(): Promise<Record<string, number>> {
    const row = await this.#reads.get<Record<string, number>>(
      `SELECT (SELECT count(*) FROM accounts WHERE closed_at IS NULL) AS accounts,
         (SELECT count(*) FROM buckets) AS buckets, (SELECT count(*) FROM objects) AS objects,
         (SELECT count(*) FROM versions) AS versions, (SELECT count(*) FROM vms) AS vms,
         (SELECT count(*) FROM databases WHERE state <> 'deleting') AS databases`,
    );
    return { ...row };
  }

  /** Whether this cloud has an object with that bucket, name and ETag. */
  async hasObject(bucket: string, name: string, etag: string): Promise<boolean> {
    const sql = `SELECT 1 FROM buckets JOIN objects ON objects.bucket_id = buckets.id AND objects.name = ?
                   JOIN versions ON versions.object = objects.id
                 WHERE buckets.name = ? AND versions.etag = ? LIMIT 1`;
    return (await this.#reads.get(sql, name, bucket, etag)) !== undefined;
  }

  /** Number of the last migration. */
  async schema(): Promise<number> {
    return (
      (await this.#reads.get<{ number: number }>('SELECT max(number) AS number FROM migrations'))?.number ?? 0
    );
  }
}

function tellsOf(pointId: string): ResourceChange {
  return { accountId: null, kind: 'recovery_point', id: pointId };
}
