/** Statements about sessions: what they run, and users' activity. */

import { type RunningStatement, SLOW_MS, SLOW_TEXT } from '../../managed-server/accounts/tenant-logs.ts';
import type { ServerUse } from '../../managed-server/sql-engine.ts';
import { type Admin, databaseOf, ofOurs, rowsOf } from './admin-store.ts';

const NO_SUCH_THREAD = 1094;

/** Null: not counted. */
export interface UseOf {
  readonly connections: number | null;
  readonly statements: number | null;
  readonly rowsReturned: number | null;
  readonly rowsWritten: number | null;
}

export interface Session {
  readonly database: string;
  /** The time of its end. */
  readonly at: string;
}

/** Ends all sessions of these users. */
export async function endSessions(admin: Admin, users: readonly string[]): Promise<void> {
  const rows = await rowsOf(admin, `SELECT id FROM (${admin.dialect.sessions}) s WHERE user IN (?)`, [users]);
  for (const { id } of rows) await kill(admin, Number(id));
}

/** Ends sessions that load dumps into new databases. */
export async function endLoads(admin: Admin): Promise<void> {
  const rows = await rowsOf(admin, `SELECT id FROM (${admin.dialect.sessions}) s WHERE user REGEXP '^t_'`);
  for (const { id } of rows) await kill(admin, Number(id));
}

export async function kill(admin: Admin, session: number): Promise<void> {
  try {
    await admin.query(`${admin.dialect.kill} CONNECTION ${Math.trunc(session)}`);
  } catch (error) {
    if ((error as { errno?: number }).errno !== NO_SUCH_THREAD) throw error;
  }
}

export async function useOf(admin: Admin, users: readonly string[]): Promise<UseOf> {
  const { uses } = admin.dialect;
  if (uses === null) return { connections: null, statements: null, rowsReturned: null, rowsWritten: null };
  const [row] = await rowsOf(
    admin,
    `SELECT SUM(connections) AS connections, SUM(statements) AS statements, SUM(sent) AS sent,
       SUM(written) AS written FROM (${uses}) s WHERE user IN (?)`,
    [users],
  );
  return {
    connections: Number(row?.connections ?? 0),
    statements: Number(row?.statements ?? 0),
    rowsReturned: Number(row?.sent ?? 0),
    rowsWritten: Number(row?.written ?? 0),
  };
}

/** A text for each database that changes when it is used: counts and current statements of its users. */
export async function activity(admin: Admin): Promise<Map<string, string>> {
  const { uses, users, sessions } = admin.dialect;
  const rows = await rowsOf(
    admin,
    uses === null
      ? // Without counters, every user may have been active.
        `SELECT user, CURRENT_TIMESTAMP(6) AS done FROM (${users}) u WHERE user REGEXP '^u_' ORDER BY 1`
      : `SELECT user, CONCAT(total, ' ', statements) AS done FROM (${uses}) s WHERE user REGEXP '^[uwr]_' ORDER BY 1`,
  );
  const under = await rowsOf(
    admin,
    `SELECT user, MAX(query) AS last FROM (${sessions}) s WHERE user REGEXP '^[uwr]_' GROUP BY user`,
  );
  const last = new Map(under.map((row) => [String(row.user), String(row.last)]));
  const of = new Map<string, string>();
  for (const row of rows) {
    const database = databaseOf(String(row.user));
    of.set(database, `${of.get(database) ?? ''} ${row.done} ${last.get(String(row.user))}`);
  }
  return of;
}

const NOW = "DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s')";
const RUNS = "s.command IN ('Query', 'Execute')";

/**
 * Ends tenants' sessions whose statement exceeds the time limit of its user, because users can lift the limit
 * in a session. Waits one second more, so that the server's own limit acts first.
 */
export async function endRunaways(admin: Admin): Promise<readonly Session[]> {
  const { sessions, users } = admin.dialect;
  const rows = await rowsOf(
    admin,
    `SELECT s.id, s.user, ${NOW} AS at FROM (${sessions}) s JOIN (${users}) u ON u.user = s.user
     WHERE s.user REGEXP '^[uwr]_' AND ${RUNS} AND u.statement_ms > 0 AND s.ms > u.statement_ms + 1000`,
  );
  const seen = rows.map(({ id, user, at }) => ({ id: Number(id), user: String(user), at: String(at) }));
  const found = await ofOurs(admin, seen);
  for (const session of found) await kill(admin, session.id);
  return found.map(({ user, at }) => ({ database: databaseOf(user), at }));
}

/** Tenants' statements that run for long; `database` is what its user belongs to. */
export async function slowStatements(admin: Admin): Promise<RunningStatement[]> {
  const rows = await rowsOf(
    admin,
    `SELECT CONCAT(s.id, ' ', s.query) AS tag, s.user, ${NOW} AS at, s.ms, LEFT(s.text, ?) AS text
     FROM (${admin.dialect.sessions}) s WHERE s.user REGEXP '^[uwr]_' AND ${RUNS} AND s.ms > ?`,
    [SLOW_TEXT, SLOW_MS],
  );
  const seen = rows.map((row) => Object.assign(row, { user: String(row.user) }));
  return (await ofOurs(admin, seen)).map(({ tag, user, at, ms, text }) => ({
    key: String(tag),
    database: databaseOf(user),
    at: String(at),
    ms: Number(ms),
    text: String(text ?? ''),
  }));
}

/** Usage of one account's server, including loads; our sessions do not count. */
export async function serverUse(admin: Admin): Promise<ServerUse> {
  const [row] = await rowsOf(
    admin,
    `SELECT COUNT(*) AS sessions, COALESCE(SUM(s.command <> 'Sleep' OR t.trx_id IS NOT NULL), 0) AS busy,
       COALESCE(MAX(IF(s.command <> 'Sleep' OR t.trx_id IS NOT NULL, s.ms, 0)), 0) AS runs_ms
     FROM (${admin.dialect.sessions}) s LEFT JOIN information_schema.INNODB_TRX t ON t.trx_mysql_thread_id = s.id
     WHERE s.user REGEXP '^[tuwr]_'`,
  );
  const users = await rowsOf(
    admin,
    `SELECT u.User AS user, COALESCE(JSON_VALUE(u.Priv, '$.max_user_connections'), 0) AS most, COUNT(s.id) AS sessions
     FROM mysql.global_priv u LEFT JOIN (${admin.dialect.sessions}) s ON s.user = u.User
     WHERE u.User REGEXP '^u_' GROUP BY u.User`,
  );
  return {
    sessions: Number(row?.sessions),
    busy: Number(row?.busy),
    runsMs: Number(row?.runs_ms),
    done: await activity(admin),
    users: new Map(
      users.map(({ user, most, sessions }) => [
        databaseOf(String(user)),
        { most: Number(most), sessions: Number(sessions) },
      ]),
    ),
  };
}
