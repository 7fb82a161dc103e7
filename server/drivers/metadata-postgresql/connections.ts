/** Connections to the operator's PostgreSQL, with the types that the domains expect. */
import type pg from 'pg';
import type { Reads, SqlValue } from '../../metadata/metadata.ts';
import { numbered } from './sql-texts.ts';

/** OIDs of types (pg_type.dat). */
const BOOL = 16;
const INT8 = 20;
const NUMERIC = 1700;
const WHOLE = /^-?\d+$/;

function integer(text: string): number | bigint {
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : BigInt(text);
}

/** SQLite's types: integers as number or bigint, booleans as 1 and 0. */
const PARSERS = new Map<number, (text: string) => unknown>([
  [BOOL, (text) => (text === 't' ? 1 : 0)],
  [INT8, integer],
  [NUMERIC, (text) => (WHOLE.test(text) ? integer(text) : Number(text))],
]);

/** The library, loaded when the first connection opens: most clouds have no PostgreSQL. */
let library: typeof pg | undefined;

async function loadLibrary(): Promise<typeof pg> {
  library ??= (await import('pg')).default;
  return library;
}

export interface ConnectionOptions {
  readonly url: string;
  /** Identifies the process on the database; '' for one that only reads or moves. */
  readonly writer?: string;
  /** Called once when the connection ends, for any reason. */
  readonly onEnd: () => void;
  /** The server ends a transaction that waits longer for its next statement; default: never. */
  readonly idleMs?: number;
}

/** Shown in pg_stat_activity. */
export function sessionName(writer: string): string {
  return writer === '' ? 'cloudlet' : `cloudlet ${writer}`;
}

const CONNECT_MS = 5000;
/** Our statements take milliseconds; a hanging one must not block the store. */
const STATEMENT_MS = 60_000;

/**
 * Opens a connection that sends statements without waiting for earlier results. Rejects with pg's
 * errors.
 */
export async function connect({ url, writer = '', onEnd, idleMs }: ConnectionOptions): Promise<pg.Client> {
  const { Client, types } = await loadLibrary();
  const client = new Client({
    connectionString: url,
    application_name: sessionName(writer),
    connectionTimeoutMillis: CONNECT_MS,
    statement_timeout: STATEMENT_MS,
    ...(idleMs !== undefined && { idle_in_transaction_session_timeout: idleMs }),
    keepAlive: true,
    options: '-c search_path=public -c timezone=UTC -c default_transaction_isolation=read\\ committed',
    types: {
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        PARSERS.get(oid) ?? types.getTypeParser(oid, format),
    },
    pipeline: true,
  } as pg.ClientConfig);
  // An error is also the end of the connection.
  client.on('error', () => {});
  await client.connect();
  // Only now, because the end of a failed attempt must not count as the end of the next connection.
  client.once('end', onEnd);
  return client;
}

interface Writing {
  readonly connection: {
    readonly stream: { cork(): void; uncork(): void; destroy(): void };
  };
}
const streamOf = (client: pg.Client) => (client as unknown as Writing).connection.stream;

/** Buffers sent data until the result is called: then one system call sends all. */
export function heldBack(client: pg.Client): () => void {
  const stream = streamOf(client);
  stream.cork();
  return () => stream.uncork();
}

/** Closes the connection immediately, even if the server does not answer. */
export function cut(client: pg.Client): void {
  // pg's own end() waits for answers in pipeline mode.
  streamOf(client).destroy();
}

/** SQLSTATE of a connection that the server ends or refuses (PostgreSQL, appendix A). */
const LOST = /^(08(?!P01)...|57P0[1-5]|25P03|53300)$/;

/** The SQLSTATE of an error of a statement; '': the connection is lost. */
export function codeOf(error: unknown): string {
  const code = isOfServer(error) ? (error.code ?? '') : '';
  return LOST.test(code) ? '' : code;
}

/** SQLSTATE of a write to a standby, or to a database that its settings make read-only. */
const READ_ONLY = '25006';

/** Also of an error that this one caused. */
export function isReadOnly(error: unknown): boolean {
  const own = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return isOfServer(own) && own.code === READ_ONLY;
}

/** Without the library there was no connection, so there is no error of a server. */
function isOfServer(error: unknown): error is pg.DatabaseError {
  return library !== undefined && error instanceof library.DatabaseError;
}

/** Whether the server is a standby, which may lag. Cuts a connection that does not answer. */
export async function isStandby(client: pg.Client): Promise<boolean> {
  const late = setTimeout(() => cut(client), CONNECT_MS);
  try {
    const { rows } = await client.query<{ is: number }>('SELECT pg_is_in_recovery() AS is');
    return rows[0]?.is === 1;
  } finally {
    clearTimeout(late);
  }
}

/** The value to send. */
export function toSent(value: SqlValue): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return typeof value === 'bigint' ? String(value) : value;
}

const MAX_NAMES = 2000;
const names = new Map<string, { readonly name: string; readonly text: string }>();

/** The prepared statement of a text, equal on every connection. */
export function prepared(sql: string): { readonly name: string; readonly text: string } {
  const known = names.get(sql);
  if (known !== undefined) return known;
  // Texts are constant; the limit protects against generated ones.
  const made = { name: names.size < MAX_NAMES ? `s${names.size}` : '', text: numbered(sql) };
  if (made.name !== '') names.set(sql, made);
  return made;
}

/** Queries on one connection, within its open transaction. */
export function readsOf(client: pg.Client) {
  const all = async <T>(sql: string, ...params: SqlValue[]): Promise<T[]> =>
    (await client.query({ ...prepared(sql), values: params.map(toSent) })).rows as T[];
  const get = async <T>(sql: string, ...params: SqlValue[]) => (await all<T>(sql, ...params))[0];
  return { all, get } satisfies Reads;
}
