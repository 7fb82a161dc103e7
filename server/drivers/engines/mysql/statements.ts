/** Runs statements as a tenant on MariaDB and returns a limited number of rows as JSON. */
import type { Connection, FieldPacket } from 'mysql2';
import {
  type EngineDatabase,
  type Query,
  QueryFailed,
  type QueryResult,
  type Scan,
  type Table,
} from '../../../databases/engine.ts';
import type { RunHow, Statements, Step } from '../../managed-server/accounts/tenant-queries.ts';
import { diskFull, timedOut } from '../../managed-server/database-server.ts';
import { MAX_OVERSHOOT_BYTES, SentTooMuch, tooLarge } from '../../managed-server/links/bounded-answers.ts';
import { STEPS } from '../shared/transaction-steps.ts';
import { writtenResult } from '../shared/written-result.ts';
import { ask, type MysqlLinks } from './mysql-links.ts';
import { usersOf } from './mysql-store.ts';
import * as sessions from './sessions-store.ts';
import { listTables } from './tables-store.ts';

/** Out of time, killed. */
const STOPPED = [1969, 1317, 3024];
const SESSION_ENDED = [1927, 1928];
const FULL = [1021, 1114];
/** How long the server waits for a client that reads all rows slowly. */
const SLOW_CLIENT_SECONDS = 600;
/** Bytes of rows that are in memory during a scan. */
const STEP_BYTES = 256 * 1024;
/** Approximate bytes of a number. */
const VALUE_BYTES = 8;
const PACKET_TOO_LARGE = '1153';
/** A read-only statement; the rights of its user keep functions that it calls from writing too. */
const READS = /^(?:SELECT|WITH|SHOW|DESCRIBE|DESC|EXPLAIN|ANALYZE|VALUES|TABLE|HELP|CHECKSUM|\()/i;
const BLANK = /^(?:\s+|--[^\n]*(?:\n|$)|#[^\n]*(?:\n|$)|\/\*(?!M?!)[\s\S]*?\*\/)+/;
const CHANGES = /^\s*(?:INSERT|UPDATE|DELETE|REPLACE|LOAD)\b/i;

export class MysqlStatements implements Statements<Connection> {
  readonly title = 'MariaDB';
  readonly makesTablesInTransactions = false;
  readonly wrongPassword = 'ER_ACCESS_DENIED_ERROR';
  readonly #links: MysqlLinks;

  constructor(links: MysqlLinks) {
    this.#links = links;
  }

  check({ statement, readOnly }: Query): void {
    // A compound block could end the read-only transaction.
    if (readOnly && !READS.test(String(statement).replace(BLANK, '')))
      throw new QueryFailed('Cannot execute statement in a READ ONLY transaction', '1792');
  }

  roleFor({ database }: EngineDatabase, readOnly: boolean): string {
    const { reader, writer } = usersOf(database);
    return readOnly ? reader : writer;
  }

  as<T>(
    { role, database, timeoutMs, maxBytes }: RunHow,
    work: (driver: Connection) => Promise<T>,
  ): Promise<T> {
    const bound = maxBytes === null ? {} : { maxBytes: maxBytes + MAX_OVERSHOOT_BYTES };
    return this.#links.as({ user: role, database, ...bound }, async (driver) => {
      await ask(driver, this.#links.dialect.timed(timeoutMs));
      return work(driver);
    });
  }

  async run(driver: Connection, query: Query): Promise<QueryResult> {
    if (query.readOnly) await ask(driver, 'START TRANSACTION READ ONLY');
    const result = await fetchLimited(driver, query);
    // The remaining rows are no longer computed.
    if (result.truncated) void this.stop(driver).catch(() => {});
    return result;
  }

  async scan(driver: Connection, scan: Scan): Promise<void> {
    await ask(driver, `SET SESSION net_write_timeout = ${SLOW_CLIENT_SECONDS}`);
    await ask(driver, 'START TRANSACTION READ ONLY');
    await fetchAll(driver, scan);
  }

  async transact(driver: Connection, step: Step): Promise<void> {
    await ask(driver, STEPS[step]);
  }

  tables(driver: Connection): Promise<Table[]> {
    return listTables((sql) => ask(driver, sql));
  }

  stop(driver: Connection): Promise<void> {
    return this.#links.asAdmin((admin) => sessions.kill(admin, driver.threadId));
  }

  asError(error: Error, statement: string): Error | null {
    if (error instanceof SentTooMuch) return tooLarge(PACKET_TOO_LARGE);
    if (isDatabaseError(error)) {
      if (SESSION_ENDED.includes(error.errno)) return null;
      if (STOPPED.includes(error.errno)) return timedOut(error);
      if (FULL.includes(error.errno)) return diskFull(error);
      const { sqlMessage, errno } = error;
      return new QueryFailed(sqlMessage, String(errno), { position: positionIn(statement, sqlMessage) });
    }
    return null;
  }
}

interface ChangedRows {
  readonly affectedRows: number;
}

/** The part of a driver's query that is used here. */
interface Under {
  on(event: 'fields', listener: (fields: FieldPacket[] | undefined) => void): Under;
  on(event: 'result', listener: (row: unknown[] | ChangedRows) => void): Under;
  on(event: 'error', listener: (error: Error) => void): Under;
  on(event: 'end', listener: () => void): Under;
}

/** Continues when the previous rows have been processed: the server waits for us meanwhile. */
function fetchAll(driver: Connection, { statement, onRows }: Scan): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let [rows, bytes]: [unknown[][], number] = [[], 0];
  const pass = () => {
    const found = rows;
    [rows, bytes] = [[], 0];
    return onRows(found);
  };
  const under = driver.query({ sql: String(statement), rowsAsArray: true }) as unknown as Under;
  driver.once('error', reject);
  under
    .on('result', (row) => {
      if (!Array.isArray(row)) return;
      rows.push(row.map(asJson));
      bytes += row.reduce((sum: number, value) => sum + (lengthOf(value) ?? VALUE_BYTES), 0);
      if (bytes < STEP_BYTES) return;
      driver.pause();
      pass().then(() => driver.resume(), reject);
    })
    .on('error', reject)
    .on('end', () => void (rows.length === 0 ? Promise.resolve() : pass()).then(resolve, reject));
  return promise;
}

function lengthOf(value: unknown): number | undefined {
  return typeof value === 'string' || Buffer.isBuffer(value) ? value.length : undefined;
}

/** A connection whose result was truncated cannot be used again. */
async function fetchLimited(
  driver: Connection,
  { statement, params, maxRows, maxBytes, skip = 0 }: Query,
): Promise<QueryResult> {
  const { Types } = (await import('mysql2')).default;
  const { promise, resolve, reject } = Promise.withResolvers<QueryResult>();
  const text = String(statement);
  let fields: readonly FieldPacket[] = [];
  const rows: string[] = [];
  let bytes = 0;
  let toSkip = skip;
  let affected: number | null = null;
  const end = (truncated: boolean) => {
    const columns = fields.map(({ name, columnType }) => ({ name, type: typeName(Types, columnType) }));
    resolve(writtenResult({ columns, rows, affected, truncated }));
  };
  const options = { sql: text, values: params.map(asParameter), rowsAsArray: true };
  const isPlain = params.length === 0;
  const under = (isPlain ? driver.query(options) : driver.execute(options)) as unknown as Under;
  // The query itself is not notified when its connection ends.
  driver.once('error', reject);
  under
    .on('fields', (found) => {
      fields = found ?? [];
    })
    .on('result', (row) => {
      if (!Array.isArray(row)) {
        if (CHANGES.test(text)) affected = row.affectedRows;
        return;
      }
      if (toSkip > 0) {
        toSkip--;
        return;
      }
      const written = JSON.stringify(row.map(asJson));
      bytes += Buffer.byteLength(written);
      if (rows.length < maxRows && bytes <= maxBytes) rows.push(written);
      else end(true);
    })
    .on('error', reject)
    .on('end', () => end(false));
  return promise;
}

interface DatabaseError extends Error {
  readonly errno: number;
  readonly sqlState: string;
  readonly sqlMessage: string;
}

function isDatabaseError(error: Error): error is DatabaseError {
  return typeof (error as Partial<DatabaseError>).sqlState === 'string';
}

/** `bigint`, `var_string`, … */
function typeName(types: object, type: number | undefined): string | null {
  const names = types as Readonly<Record<number, string>>;
  return type === undefined ? null : (names[type]?.toLowerCase() ?? null);
}

/** Syntax errors quote the rest of the statement from the wrong word on, and its line. */
function positionIn(statement: string, message: string): number | null {
  const [, rest, line] = /near '([\s\S]*)' at line (\d+)$/.exec(message) ?? [];
  if (rest === undefined || rest === '') return null;
  const lines = statement.split('\n');
  const before = lines.slice(0, Number(line) - 1).join('\n').length;
  const at = statement.indexOf(rest, before);
  return at < 0 ? null : [...statement.slice(0, at)].length + 1;
}

/** Objects and arrays are sent as JSON. */
function asParameter(value: unknown): string | number | boolean | null {
  if (value === null || value === undefined) return null;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  return JSON.stringify(value);
}

/** Dates and integers beyond 2^53 are already text. */
function asJson(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return value.toString('base64');
  return typeof value === 'bigint' ? value.toString() : value;
}
