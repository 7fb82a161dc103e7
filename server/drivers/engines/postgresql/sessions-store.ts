/** Statements about sessions: what they run, ending them, and their activity. */
import type { ClientBase } from 'pg';
import { type RunningStatement, SLOW_MS, SLOW_TEXT } from '../../managed-server/accounts/tenant-logs.ts';
import type { ServerUse } from '../../managed-server/sql-engine.ts';
import { ADMIN, DUMPER, type Guest, id, type Roles } from './postgresql-store.ts';

export interface Session {
  readonly database: string;
  /** End of the session. */
  readonly at: string;
}

/**
 * Ends all sessions in a database that its tenant began, with any role, except ours. On an
 * operator's server, only those of the role that we created.
 */
export async function endTenant(
  client: ClientBase,
  { group, user, local }: Roles,
  guest: Guest | null,
): Promise<void> {
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE pid <> pg_backend_pid() AND pg_has_role(usesysid, 'USAGE') AND (usename = $1
       OR $2 AND datname = $3 AND usename <> ALL ($4))`,
    [user, guest === null, group, [ADMIN, DUMPER, local]],
  );
}

/**
 * A text for each database that changes when it is used: the last change of its sessions, and a
 * count of ended ones.
 */
export async function activity(client: ClientBase): Promise<Map<string, string>> {
  const { rows } = await client.query(
    `SELECT s.datname, s.xact_commit + s.xact_rollback AS done, max(a.state_change) AS last
     FROM pg_stat_database s LEFT JOIN pg_stat_activity a ON a.datid = s.datid AND a.usename NOT IN ('${ADMIN}', '${DUMPER}')
     WHERE s.datname ~ '^d_' GROUP BY 1, 2`,
  );
  return new Map(rows.map((row) => [String(row.datname), `${row.done} ${row.last?.getTime()}`]));
}

/** Usage of one account's server, including loads; our sessions do not count. */
export async function serverUse(client: ClientBase): Promise<ServerUse> {
  const { rows } = await client.query(
    `SELECT count(*)::int AS sessions, (count(*) FILTER (WHERE state <> 'idle'))::int AS busy,
       coalesce(max(extract(epoch FROM clock_timestamp() -
         CASE state WHEN 'active' THEN query_start ELSE state_change END)) FILTER (WHERE state <> 'idle'), 0) AS runs
     FROM pg_stat_activity WHERE backend_type = 'client backend' AND usename NOT IN ('${ADMIN}', '${DUMPER}')`,
  );
  // Runs each second: planned once per connection.
  const users = await client.query({
    name: 'sessions of users',
    text: `SELECT 'd_' || substr(r.rolname, 3) AS database, r.rolconnlimit AS most, count(a.pid)::int AS sessions
       FROM pg_roles r LEFT JOIN pg_stat_get_activity(NULL) a ON a.usesysid = r.oid
       WHERE r.rolname ~ '^u_[a-z0-9]{16}$' GROUP BY 1, 2`,
  });
  return {
    sessions: rows[0].sessions,
    busy: rows[0].busy,
    runsMs: Number(rows[0].runs) * 1000,
    done: await activity(client),
    users: new Map(users.rows.map(({ database, ...of }) => [database, of])),
  };
}

/** If a tenant's transaction locks the role, it is neither awaited nor ended: the next call retries. */
export async function setConnections(client: ClientBase, role: string, connections: number): Promise<void> {
  const limit = `ALTER ROLE ${id(role)} CONNECTION LIMIT ${Math.trunc(connections)}`;
  await client.query(`BEGIN; SET LOCAL lock_timeout = '200ms'; ${limit}; COMMIT`);
}

/**
 * Ends sessions beyond `most`, the newest first, of roles created by tenants, which set their own
 * limits. Users of databases have our limits.
 */
export async function endBeyond(client: ClientBase, most: number): Promise<void> {
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM (
       SELECT pid, usename, row_number() OVER (ORDER BY backend_start) AS nth FROM pg_stat_activity
       WHERE backend_type = 'client backend' AND usename NOT IN ('${ADMIN}', '${DUMPER}')) AS s
     WHERE nth > $1 AND NOT EXISTS (SELECT FROM pg_database
       WHERE usename ~ '^[uq]_' AND datname = 'd_' || substr(usename, 3) AND pg_get_userbyid(datdba) = '${ADMIN}')`,
    [most],
  );
}

/**
 * Ends tenants' sessions whose statement exceeds the time limit of its database, because users can lift
 * statement_timeout. Waits one second more, so that the server's own limit acts first.
 */
export async function endRunaways(client: ClientBase): Promise<Session[]> {
  const { rows } = await client.query(
    `SELECT a.pid, a.datname, to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS at, pg_terminate_backend(a.pid)
     FROM pg_stat_activity a JOIN pg_db_role_setting s ON s.setdatabase = a.datid AND s.setrole = 0,
       unnest(s.setconfig) AS setting
     WHERE setting LIKE 'statement_timeout=%' AND a.usename ~ '^[uq]_' AND a.datname ~ '^d_'
       AND pg_has_role(a.usesysid, 'USAGE') AND a.state IN ('active', 'fastpath function call')
       AND a.query_start < now() - (split_part(setting, '=', 2)::int + 1000) * interval '1 ms'`,
  );
  return rows.map(({ datname, at }) => ({ database: datname, at }));
}

/** Tenants' statements that run for long, longest first. */
export async function slowStatements(client: ClientBase): Promise<RunningStatement[]> {
  const { rows } = await client.query(
    `SELECT pid || ' ' || query_start AS key, datname, left(query, $1) AS text,
       extract(epoch FROM clock_timestamp() - query_start) * 1000 AS ms,
       to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS') AS at
     FROM pg_stat_activity
     WHERE usename ~ '^[uq]_' AND datname ~ '^d_' AND pg_has_role(usesysid, 'USAGE')
       AND state IN ('active', 'fastpath function call')
       AND query_start < clock_timestamp() - $2 * interval '1 ms' ORDER BY query_start`,
    [SLOW_TEXT, SLOW_MS],
  );
  return rows.map(({ key, datname, at, ms, text }) => ({ key, database: datname, at, ms: Number(ms), text }));
}

/** Ends sessions of tenants in other databases, where we cannot prevent them. */
export async function endStrays(client: ClientBase): Promise<void> {
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE usename ~ '^[uq]_[a-z0-9]{16}$' AND datname !~ '^[dt]_' AND pg_has_role(usesysid, 'USAGE')`,
  );
}

/** Statements that free space, also in one message with the start of a writing transaction. */
const DELETES = '^\\s*((begin|start|set)\\M[^;]*;\\s*)*(delete|truncate|drop|vacuum|commit|end)\\M';

/**
 * Ends tenants' sessions and loads whose open transaction has written. Deletes continue: a server that grows
 * by them is ended (managed-server/processes/disk-guard.ts).
 */
export async function endWriters(client: ClientBase): Promise<void> {
  await client.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_xid IS NOT NULL
     AND usename <> '${ADMIN}' AND query !~* '${DELETES}'`,
  );
}

export async function cancel(client: ClientBase, pid: number, isHard: boolean): Promise<void> {
  await client.query(`SELECT ${isHard ? 'pg_terminate_backend' : 'pg_cancel_backend'}($1)`, [pid]);
}
