/**
 * The differences between the servers of MySQL databases: our own MariaDB, an operator's MariaDB,
 * and an operator's MySQL, which was never tested because none is available here.
 */
import { createHash } from 'node:crypto';

export interface Dialect {
  /** The host from which our own users log in: `localhost` is the socket, which tenants cannot reach. */
  readonly ourHost: 'localhost' | '%';
  /** A user whose rights mark the databases of this cloud on a shared server; null: all are ours. */
  readonly mark: string | null;
  /** Clause that sets a user's password. */
  readonly identified: (password: string) => string;
  /** Clause that limits the statement time of a user. */
  readonly limited: (statementMs: number) => string;
  /** Statement that sets that limit for a session. */
  readonly timed: (statementMs: number) => string;
  readonly kill: string;
  /** Whether the definer of a routine can be changed. */
  readonly hasProc: boolean;
  /** Rows as SELECT statements: users with `user`, `statement_ms`, `locked`. */
  readonly users: string;
  /** Sessions, with `id`, `user`, `command`, `ms`, `query` (differs for each statement), `text`. */
  readonly sessions: string;
  /** Counts by user: `user`, `connections`, `total`, `statements`, `sent`, `written`; null: not counted. */
  readonly uses: string | null;
  /** Files of tables, with `name` and `bytes`. */
  readonly files: string;
}

const MARIADB = {
  // Computed by us: no password reaches its log.
  identified: (password: string) => `IDENTIFIED BY PASSWORD '${nativeHash(password)}'`,
  limited: (statementMs: number) => `MAX_STATEMENT_TIME ${(statementMs / 1000).toFixed(3)}`,
  timed: (statementMs: number) => `SET SESSION max_statement_time = ${(statementMs / 1000).toFixed(3)}`,
  kill: 'KILL HARD',
  hasProc: true,
  users: `SELECT User AS user, 1000 * JSON_VALUE(Priv, '$.max_statement_time') AS statement_ms,
    COALESCE(JSON_VALUE(Priv, '$.account_locked'), 0) <> 0 AS locked FROM mysql.global_priv`,
  sessions: `SELECT ID AS id, USER AS user, COMMAND AS command, TIME_MS AS ms, QUERY_ID AS query, INFO AS text
    FROM information_schema.PROCESSLIST`,
  uses: `SELECT USER AS user, CONCURRENT_CONNECTIONS AS connections, TOTAL_CONNECTIONS AS total,
    SELECT_COMMANDS + UPDATE_COMMANDS + OTHER_COMMANDS AS statements, ROWS_SENT AS sent,
    ROWS_INSERTED + ROWS_UPDATED + ROWS_DELETED AS written FROM information_schema.USER_STATISTICS`,
  files: 'SELECT NAME AS name, FILE_SIZE AS bytes FROM information_schema.INNODB_SYS_TABLESPACES',
} as const;

const MYSQL = {
  // The server hashes it in its own format, and writes no password into its logs.
  identified: (password: string) => `IDENTIFIED BY '${password}'`,
  limited: (statementMs: number) => `ATTRIBUTE '{"statement_ms": ${Math.trunc(statementMs)}}'`,
  // Only limits SELECT; other statements are ended by the watchdog.
  timed: (statementMs: number) => `SET SESSION max_execution_time = ${Math.trunc(statementMs)}`,
  kill: 'KILL',
  hasProc: false,
  users: `SELECT User AS user, User_attributes->>'$.metadata.statement_ms' AS statement_ms,
    account_locked = 'Y' AS locked FROM mysql.user`,
  sessions: `SELECT t.PROCESSLIST_ID AS id, t.PROCESSLIST_USER AS user, t.PROCESSLIST_COMMAND AS command,
    1000 * t.PROCESSLIST_TIME AS ms, COALESCE(e.EVENT_ID, 0) AS query, t.PROCESSLIST_INFO AS text
    FROM performance_schema.threads t LEFT JOIN performance_schema.events_statements_current e
      ON e.THREAD_ID = t.THREAD_ID AND e.NESTING_EVENT_LEVEL = 0`,
  uses: `SELECT u.USER AS user, u.CURRENT_CONNECTIONS AS connections, u.TOTAL_CONNECTIONS AS total,
    s.statements, s.sent, s.written
    FROM performance_schema.users u JOIN (
      SELECT USER, SUM(COUNT_STAR) AS statements, SUM(SUM_ROWS_SENT) AS sent, SUM(SUM_ROWS_AFFECTED) AS written
      FROM performance_schema.events_statements_summary_by_user_by_event_name GROUP BY USER) s
    ON s.USER = u.USER`,
  files: 'SELECT NAME AS name, FILE_SIZE AS bytes FROM information_schema.INNODB_TABLESPACES',
} as const;

export const OWN_DIALECT: Dialect = { ...MARIADB, ourHost: 'localhost', mark: null };

export function guestDialect(
  kind: 'mariadb' | 'mysql',
  { mark, countsUse }: { readonly mark: string; readonly countsUse: boolean },
): Dialect {
  const dialect = kind === 'mariadb' ? MARIADB : MYSQL;
  return { ...dialect, ourHost: '%', mark, uses: countsUse ? dialect.uses : null };
}

/** The hash of `mysql_native_password`. It is fast, but our passwords have at least 140 bits. */
export function nativeHash(password: string): string {
  const once = createHash('sha1').update(password).digest();
  return `*${createHash('sha1').update(once).digest('hex').toUpperCase()}`;
}
