/**
 * The processes that may write to a database: a single one, or nodes side by side. A new process
 * waits until the processes it cannot coexist with have ended, or is refused while they live. A
 * lock on `store_holder` admits one at a time.
 */
import type pg from 'pg';
import { formatTime } from '../../platform/clock.ts';
import { StartupError } from '../../platform/data-directory.ts';
import { codeOf, sessionName } from './connections.ts';

/** A process that may write. */
export interface Holder {
  readonly writer: string;
  /** null: a single writer. */
  readonly node_id: string | null;
  readonly host: string;
  readonly pid: number;
  readonly since: number;
  readonly beat: string;
  readonly age_ms: number;
  readonly is_connected: number;
  readonly is_host: number;
}

/** A process without a connection for this long has ended. */
const GONE_MS = 3000;
/** Its host may have vanished silently, so that the server still counts its connections. */
export const SILENT_MS = 10_000;
const LOOK_MS = 200;

const AGE = 'floor(extract(epoch FROM clock_timestamp() - beat_at) * 1000) AS age_ms';
const CONNECTED = `EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = current_database()
                           AND a.application_name = 'cloudlet ' || writer) AS is_connected`;
const HOLDERS = `
  SELECT writer, NULL AS node_id, host, pid, since, beat_at::text AS beat, ${AGE}, ${CONNECTED}, 1 AS is_host
  FROM store_holder WHERE id = 1 AND writer IS NOT NULL
  UNION ALL
  SELECT writer, node_id, name, pid, since, beat_at::text, ${AGE}, ${CONNECTED}, is_host
  FROM store_nodes WHERE state IN ('up', 'draining')`;

/** Every process that may write. */
export async function holdersOf(client: pg.Client): Promise<Holder[]> {
  return (await client.query<Holder>(HOLDERS)).rows;
}

interface Arrival {
  /** Monotonic, ms. */
  readonly now: () => number;
  /** Whether that holder must end first. */
  readonly isInTheWay: (holder: Holder) => boolean;
  /** The refusal while it lives. */
  readonly refusal: (holder: Holder) => StartupError;
  /** Stores the new holder, in the transaction that ends the others. */
  readonly enter: () => Promise<void>;
}

/** Resolves once no other process must end first and `enter` is stored. Rejects with the refusal. */
export async function awaitFree(
  client: pg.Client,
  { now, isInTheWay, refusal, enter }: Arrival,
): Promise<void> {
  const began = now();
  const firstBeats = new Map<string, string>();
  for (;;) {
    await client.query('BEGIN');
    await client.query('SELECT FROM store_holder WHERE id = 1 FOR UPDATE');
    const others = (await holdersOf(client)).filter(isInTheWay);
    const watchedMs = now() - began;
    // While the server was away no process could renew its row, so the row's age alone proves
    // nothing. Its clock may also have been set back.
    const hasEnded = ({ is_connected, age_ms }: Holder) =>
      watchedMs >= GONE_MS && (is_connected === 0 || Math.max(age_ms, watchedMs) >= SILENT_MS);
    const alive = others.filter((holder) => !hasEnded(holder));
    if (alive.length === 0) {
      for (const { writer } of others) await endWriter(client, writer);
      await enter();
      await client.query('COMMIT');
      return;
    }
    await client.query('ROLLBACK');
    for (const holder of alive) {
      const first = firstBeats.get(holder.writer) ?? holder.beat;
      firstBeats.set(holder.writer, first);
      if (holder.beat !== first) throw refusal(holder);
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/**
 * From now on no batch of that process is stored, and its leases are free. Call it in a
 * transaction: it waits for a batch that the server is still storing.
 */
async function endWriter(client: pg.Client, writer: string): Promise<void> {
  await client.query('SAVEPOINT ends');
  // A role that may not end them waits for their commits.
  await client
    .query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1', [
      sessionName(writer),
    ])
    .catch(async (error: unknown) => {
      if (codeOf(error) === '') throw error;
      await client.query('ROLLBACK TO ends');
    });
  await client.query('DELETE FROM store_batches WHERE may_write = 0 AND writer <> $1', [writer]);
  await client.query('UPDATE store_batches SET may_write = 0 WHERE writer = $1', [writer]);
  await client.query("UPDATE store_nodes SET state = 'lost' WHERE writer = $1", [writer]);
  await client.query('DELETE FROM store_leases WHERE writer = $1', [writer]);
}

/** Ends the node unless it has sent a heartbeat meanwhile. False: the node is alive. */
export async function endIfSilent(client: pg.Client, writer: string): Promise<boolean> {
  await client.query('BEGIN');
  try {
    const { rowCount } = await client.query(
      `SELECT FROM store_nodes WHERE writer = $1 AND state IN ('up', 'draining')
         AND beat_at < clock_timestamp() - $2 * interval '1 ms' FOR UPDATE`,
      [writer, SILENT_MS],
    );
    if (rowCount === 1) await endWriter(client, writer);
    await client.query('COMMIT');
    return rowCount === 1;
  } catch (error) {
    await client.query('ROLLBACK');
    throw error;
  }
}

/** `on HOST, process N, since T`. */
export function nameOf(holder: Pick<Holder, 'host' | 'pid' | 'since'> | undefined): string {
  if (holder === undefined) return 'on another host';
  return `on ${holder.host}, process ${holder.pid}, since ${formatTime(holder.since)}`;
}

/** Why the node cannot join while that process lives. */
export function refusalOf(holder: Holder, node: { readonly nodeId: string }): StartupError {
  if (holder.node_id === null) {
    return new StartupError(
      `The database in CLOUDLET_METADATA_URL is in use by the Cloudlet ${nameOf(holder)}, which runs alone: ` +
        'set CLOUDLET_NODE_URL there too and restart it, or use a separate database for this one',
    );
  }
  if (holder.node_id === node.nodeId) {
    return new StartupError(
      `Node ${node.nodeId} is already running ${nameOf(holder)}: this data directory is a copy of the one there; ` +
        'use an empty directory with the same master.key',
    );
  }
  return new StartupError(
    `The cluster already has a node for machines and databases, ${nameOf(holder)}: set CLOUDLET_COMPUTE=off here`,
  );
}
