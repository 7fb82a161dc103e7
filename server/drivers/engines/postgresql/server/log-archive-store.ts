/** SQL for the log of our own server, which a replication slot keeps until it is archived. */
import type { ClientBase } from 'pg';
import type { LogState } from '../../../../databases/points/server-logs.ts';

/** Prefix of the slot's name, before the line's name. */
const PREFIX = 'line_';
const LINE = /^line_[a-z0-9]+$/;
const START = "pg_lsn '0/0'";

export interface LogFacts {
  readonly isKept: boolean;
  readonly segmentBytes: number;
}

export async function logFacts(client: ClientBase): Promise<LogFacts> {
  const { rows } = await client.query(
    `SELECT current_setting('wal_level') <> 'minimal' AND current_setting('max_replication_slots')::int > 0 AS kept,
       pg_size_bytes(current_setting('wal_segment_size'))::int AS segment`,
  );
  return { isKept: rows[0].kept, segmentBytes: rows[0].segment };
}

/** A slot that has lost a part of its log counts as missing. */
export async function logState(client: ClientBase): Promise<LogState> {
  // The time is read first: everything committed by then is flushed.
  const { rows } = await client.query(
    `WITH now AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS at),
       flushed AS MATERIALIZED (SELECT at, pg_current_wal_flush_lsn() AS lsn FROM now)
     SELECT at::text, (lsn - ${START})::text AS to, substr(slot_name, ${PREFIX.length + 1}) AS line,
       (restart_lsn - ${START})::text AS from, wal_status
     FROM flushed LEFT JOIN pg_replication_slots ON slot_name LIKE '${PREFIX}%'`,
  );
  const [row] = rows;
  // A slot that has lost its log no longer has a position.
  const from = row.from === null || row.wal_status === 'lost' ? null : BigInt(row.from);
  return { line: from === null ? null : row.line, from: from ?? 0n, to: BigInt(row.to), at: Number(row.at) };
}

/** Makes the server keep its log from now on, for this line only. */
export async function keepLog(client: ClientBase, line: string): Promise<void> {
  const name = `${PREFIX}${line}`;
  if (!LINE.test(name)) throw new Error('not a name that Cloudlet generates');
  await dropSlots(client);
  await client.query('SELECT pg_create_physical_replication_slot($1, true)', [name]);
}

/** Stops keeping the log. */
export async function dropSlots(client: ClientBase): Promise<void> {
  await client.query(
    `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE '${PREFIX}%'`,
  );
}

/** The part of a file of the log; the server reads it itself, as its user. */
export async function readLog(
  client: ClientBase,
  { file, from, bytes }: { readonly file: string; readonly from: number; readonly bytes: number },
): Promise<Buffer> {
  const { rows } = await client.query(
    `SELECT encode(pg_read_binary_file('pg_wal/' || $1, $2, $3), 'base64') AS bytes`,
    [file, from, bytes],
  );
  return Buffer.from(rows[0].bytes, 'base64');
}

export async function releaseLog(client: ClientBase, to: bigint): Promise<void> {
  await client.query(
    `SELECT pg_replication_slot_advance(slot_name, least(${START} + $1::numeric, pg_current_wal_flush_lsn()))
     FROM pg_replication_slots WHERE slot_name LIKE '${PREFIX}%'`,
    [String(to)],
  );
}

export interface RecoveryState {
  readonly isOver: boolean;
  /** The log is fully replayed. */
  readonly isAtEnd: boolean;
}

export async function recoveryState(client: ClientBase): Promise<RecoveryState> {
  const { rows } = await client.query(
    `SELECT NOT pg_is_in_recovery() AS over, (SELECT wait_event FROM pg_stat_activity
       WHERE backend_type = 'startup') IN ('RecoveryRetrieveRetryInterval', 'RecoveryWalStream') AS at_end`,
  );
  return { isOver: rows[0].over, isAtEnd: rows[0].at_end === true };
}

/** Position up to which the log was replayed; null: not in recovery since its start. */
export async function replayedTo(client: ClientBase): Promise<bigint | null> {
  const { rows } = await client.query(`SELECT (pg_last_wal_replay_lsn() - ${START})::text AS to`);
  return rows[0].to === null ? null : BigInt(rows[0].to);
}

export async function endRecovery(client: ClientBase): Promise<void> {
  await client.query('SELECT pg_promote(true, 60)');
}
