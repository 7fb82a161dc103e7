/** Facts about a PostgreSQL server that decide whether it can store the metadata, and how safely. */
import type { Client } from 'pg';
import { StartupError } from '../../platform/data-directory.ts';
import { connect, isStandby } from './connections.ts';

/** Major version. */
export const LEAST_VERSION = 15;

export interface ServerFacts {
  readonly version: string;
  /** `150018`. */
  readonly versionNumber: number;
  readonly encoding: string;
  readonly isStandby: boolean;
  readonly fsync: boolean;
  readonly fullPageWrites: boolean;
  /** `on`, `off`, `local`, `remote_write` or `remote_apply`. */
  readonly synchronousCommit: string;
  /** Empty: every standby is asynchronous. */
  readonly synchronousStandbys: string;
  readonly standbys: number;
  /** Additional connections that this role may open. */
  readonly freeConnections: number;
  readonly mayCreate: boolean;
  /** The server's clock less ours, ms. */
  readonly clockAheadMs: number;
}

interface Row {
  readonly version: string;
  readonly version_number: number;
  readonly encoding: string;
  readonly is_standby: number;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly synchronous_standbys: string;
  readonly standbys: number;
  readonly free_connections: number;
  readonly may_create: number;
  readonly now_ms: number;
}

const UNLIMITED = 1_000_000;
const QUERY = `SELECT current_setting('server_version') AS version,
  current_setting('server_version_num')::int AS version_number,
  current_setting('server_encoding') AS encoding,
  pg_is_in_recovery() AS is_standby,
  current_setting('fsync') AS fsync,
  current_setting('full_page_writes') AS full_page_writes,
  current_setting('synchronous_commit') AS synchronous_commit,
  current_setting('synchronous_standby_names') AS synchronous_standbys,
  (SELECT count(*) FROM pg_stat_replication) AS standbys,
  (SELECT least(
     current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
       - (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
     CASE WHEN d.datconnlimit < 0 THEN ${UNLIMITED} ELSE d.datconnlimit
       - (SELECT count(*) FROM pg_stat_activity a WHERE a.datid = d.oid) END,
     CASE WHEN r.rolconnlimit < 0 THEN ${UNLIMITED} ELSE r.rolconnlimit
       - (SELECT count(*) FROM pg_stat_activity a WHERE a.usesysid = r.oid) END)
   FROM pg_database d, pg_roles r
   WHERE d.datname = current_database() AND r.rolname = current_user) AS free_connections,
  has_schema_privilege('public', 'CREATE') AS may_create,
  floor(extract(epoch FROM clock_timestamp()) * 1000) AS now_ms`;

/** Changes nothing. Rejects with pg's errors. */
export async function serverFacts(url: string, clock: { now(): number }): Promise<ServerFacts> {
  const client = await connect({ url, onEnd: () => {} });
  try {
    const asked = clock.now();
    const { rows } = await client.query<Row>(QUERY);
    const row = rows[0] as Row;
    return {
      version: row.version,
      versionNumber: row.version_number,
      encoding: row.encoding,
      isStandby: row.is_standby === 1,
      fsync: row.fsync === 'on',
      fullPageWrites: row.full_page_writes === 'on',
      synchronousCommit: row.synchronous_commit,
      synchronousStandbys: row.synchronous_standbys,
      standbys: row.standbys,
      freeConnections: row.free_connections,
      mayCreate: row.may_create === 1,
      clockAheadMs: row.now_ms - (asked + clock.now()) / 2,
    };
  } finally {
    await client.end();
  }
}

/** Rejects with a StartupError if the server is too old or a standby. */
export async function assertUsable(client: Client): Promise<void> {
  const { rows } = await client.query<{ version: string }>(
    `SELECT current_setting('server_version') AS version WHERE current_setting('server_version_num')::int < $1`,
    [LEAST_VERSION * 10_000],
  );
  if (rows[0] !== undefined) {
    throw new StartupError(
      `PostgreSQL ${rows[0].version} is too old for the metadata: ${LEAST_VERSION} or newer is needed`,
    );
  }
  if (await isStandby(client)) {
    throw new StartupError(
      'PostgreSQL in CLOUDLET_METADATA_URL is a standby, which is read-only: set the URL of the primary',
    );
  }
}
