/** Runs statements as a tenant on PostgreSQL and returns a limited number of rows as JSON. */
import type { Client, Connection } from 'pg';
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
import {
  endBeyondEach,
  MAX_OVERSHOOT_BYTES,
  SentTooMuch,
  tooLarge,
} from '../../managed-server/links/bounded-answers.ts';
import { STEPS } from '../shared/transaction-steps.ts';
import { writtenResult } from '../shared/written-result.ts';
import { type PostgresqlLinks, streamOf } from './postgresql-links.ts';
import { rolesOf } from './postgresql-store.ts';
import { cancel } from './sessions-store.ts';
import { beginReading, listTables, typeNames } from './tables-store.ts';

const CANCELLED = '57014';
const SESSION_ENDED = '57P01';
const DISK_FULL = '53100';
/** `read_only_sql_transaction`. */
export const READ_ONLY = '25006';
/** Statements that free space are allowed in a full database. */
const FREES = /^\s*(?:delete|truncate|drop|vacuum)\b/i;
const PROGRAM_LIMIT = '54000';

export class PostgresqlStatements implements Statements<Client> {
  readonly title = 'PostgreSQL';
  readonly makesTablesInTransactions = true;
  readonly wrongPassword = '28P01';
  readonly #links: PostgresqlLinks;

  constructor(links: PostgresqlLinks) {
    this.#links = links;
  }

  check({ statement, params }: Query): void {
    refuseNul(String(statement), params);
  }

  roleFor({ database }: EngineDatabase): string {
    return rolesOf(database).local;
  }

  as<T>({ role, database, timeoutMs, maxBytes }: RunHow, work: (client: Client) => Promise<T>): Promise<T> {
    const options = `-c statement_timeout=${timeoutMs}`;
    const bound = maxBytes === null ? {} : { maxBytes: maxBytes + MAX_OVERSHOOT_BYTES };
    return this.#links.as({ user: role, database, options, ...bound }, work);
  }

  async run(client: Client, query: Query): Promise<QueryResult> {
    if (query.readOnly) await beginReading(client);
    else if (FREES.test(String(query.statement)))
      await client.query('SET default_transaction_read_only = off');
    const limited = new LimitedQuery(query);
    client.query(limited);
    const { columns, rows, affected, truncated } = await limited.result;
    const names = columns.length === 0 ? [] : await typeNames(client, columns);
    return writtenResult({
      columns: columns.map(({ name }, at) => ({ name, type: names[at] ?? null })),
      rows: Iterator.from(rows).map((row) => jsonOf(row, columns)),
      affected,
      truncated,
    });
  }

  async scan(client: Client, { onRows, ...scan }: Scan): Promise<void> {
    await beginReading(client);
    const enough = endBeyondEach(streamOf(client), SCANNED_BYTES);
    const query = new LimitedQuery(scan, async (rows, columns) => {
      enough();
      await onRows(rows.map((row) => valuesOf(row, columns)));
    });
    client.query(query);
    await query.result;
  }

  async transact(client: Client, step: Step): Promise<void> {
    await client.query(STEPS[step]);
  }

  tables(client: Client): Promise<Table[]> {
    return listTables(client);
  }

  stop(client: Client, isHard: boolean): Promise<void> {
    const { processID: pid } = client as unknown as { readonly processID: number };
    return this.#links.asAdmin((admin) => cancel(admin, pid, isHard));
  }

  asError(error: Error): Error | null {
    if (error instanceof SentTooMuch) return tooLarge(PROGRAM_LIMIT);
    if (!isDatabaseError(error)) return null;
    if (error.code === SESSION_ENDED) return null;
    if (error.code === CANCELLED) return timedOut(error);
    if (error.code === DISK_FULL) return diskFull(error);
    const { message, code, detail, hint } = error;
    const position = error.position === undefined ? null : Number(error.position);
    return new QueryFailed(detail === undefined ? message : `${message}. ${detail}`, code, {
      position,
      hint,
    });
  }
}

interface Column {
  readonly name: string;
  /** The id of its type, in pg_type. */
  readonly typeId: number;
  readonly typeModifier: number;
}

interface Fetched {
  readonly columns: readonly Column[];
  /** In the text form of PostgreSQL. */
  readonly rows: readonly (readonly (string | null)[])[];
  readonly affected: number | null;
  readonly truncated: boolean;
}

const NO_INPUT = 'COPY FROM STDIN reads data from its client, and a query over the API sends no data';
const FEATURE_NOT_SUPPORTED = '0A000';
const UNTRANSLATABLE = '22P05';
/** Rows fetched at a time: few if they are large. */
const STEP_ROWS = 100;
/** Fetched at a time while rows are left out. */
const SKIPPED_STEP_ROWS = 2000;
/** Target bytes of rows per step of a scan, estimated from the previous rows. */
const STEP_BYTES = 256 * 1024;
/** Rows of the first step, when their size is unknown. */
const FIRST_STEP_ROWS = 8;
/** Maximum rows of one step of a scan. */
const SCANNED_BYTES = 64 * 2 ** 20;
/** The least that JSON adds to a value. */
const JSON_BYTES = 3;
/** Commands whose row count is the number of changed rows. */
const CHANGES = /^(?:INSERT|UPDATE|DELETE|MERGE|COPY) (?:\d+ )?(\d+)$/;

/** The part of a message of pg's connection that is used here. */
interface Message {
  readonly fields?: readonly { name: string; dataTypeID: number; dataTypeModifier: number }[];
  readonly text?: string;
}
type Wire = Connection & {
  parse(query: object): void;
  bind(config: object): void;
  describe(of: object): void;
  execute(config: object): void;
  close(of: object): void;
  flush(): void;
  sync(): void;
  sendCopyFail(reason: string): void;
};

/** A scan has neither limit. */
type Limits = Pick<Query, 'statement' | 'params'> & Partial<Pick<Query, 'skip' | 'maxRows' | 'maxBytes'>>;
type Rows = readonly (readonly (string | null)[])[];
type OnStep = (rows: Rows, columns: readonly Column[]) => Promise<void>;
const NO_LIMIT = Number.POSITIVE_INFINITY;

/**
 * One statement by PostgreSQL's extended protocol, which refuses a second one after it. A Submittable of pg,
 * because pg's own queries fetch all rows.
 */
class LimitedQuery {
  readonly result: Promise<Fetched>;
  readonly #query: Limits;
  readonly #onStep: OnStep | null;
  /** Rows and bytes of the last step of a scan. */
  #step = { rows: 0, bytes: 0 };
  readonly #fetched: PromiseWithResolvers<Fetched>;
  #columns: Column[] = [];
  readonly #rows: (string | null)[][] = [];
  #bytes = 0;
  /** Rows that are still left out. */
  #toSkip: number;
  #affected: number | null = null;
  #isTruncated = false;
  #readsFromClient = false;

  /** With `onStep`, all rows are passed to it, step by step, and the result has none. */
  constructor(query: Limits, onStep: OnStep | null = null) {
    this.#query = query;
    this.#onStep = onStep;
    this.#toSkip = query.skip ?? 0;
    this.#fetched = Promise.withResolvers();
    this.result = this.#fetched.promise;
    // May fail before anyone awaits it.
    this.result.catch(() => {});
  }

  submit(connection: Connection): void {
    const wire = connection as Wire;
    const { statement, params } = this.#query;
    try {
      wire.parse({ text: String(statement), name: '', types: [] });
      wire.bind({ portal: '', statement: '', values: params.map(asText), valueMapper: asText });
      wire.describe({ type: 'P', name: '' });
      wire.execute({ portal: '', rows: this.#nextRows() });
      wire.flush();
    } catch (error) {
      this.handleError(error as Error, connection);
    }
  }

  handleRowDescription({ fields = [] }: Message): void {
    this.#columns = fields.map(({ name, dataTypeID, dataTypeModifier }) => ({
      name,
      typeId: dataTypeID,
      typeModifier: dataTypeModifier,
    }));
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const { maxRows = NO_LIMIT, maxBytes = NO_LIMIT } = this.#query;
    if (this.#toSkip > 0) {
      this.#toSkip--;
      return;
    }
    const bytes = fields.reduce((sum, field) => sum + (field?.length ?? 1) + JSON_BYTES, 0);
    if (this.#rows.length >= maxRows || this.#bytes + bytes > maxBytes) {
      this.#isTruncated = true;
      return;
    }
    this.#bytes += bytes;
    this.#rows.push(fields);
  }

  handlePortalSuspended(connection: Connection): void {
    const wire = connection as Wire;
    if (this.#isTruncated) {
      wire.close({ type: 'P', name: '' });
      wire.sync();
      return;
    }
    this.#passOn(wire, () => {
      wire.execute({ portal: '', rows: this.#nextRows() });
      wire.flush();
    });
  }

  handleCommandComplete({ text = '' }: Message, connection: Connection): void {
    const match = CHANGES.exec(text);
    // Copied, because they are not changed.
    if (match !== null && !this.#isTruncated) this.#affected = Number(match[1]);
    this.#passOn(connection as Wire, () => (connection as Wire).sync());
  }

  handleEmptyQuery(connection: Connection): void {
    (connection as Wire).sync();
  }

  handleCopyInResponse(connection: Connection): void {
    this.#readsFromClient = true;
    (connection as Wire).sendCopyFail(NO_INPUT);
  }

  /** Discards COPY data. */
  handleCopyData(): void {
    this.#isTruncated = true;
  }

  /** The last event of this query; a lost connection may be ignored. */
  handleError(error: Error, connection: Connection): void {
    if (isDatabaseError(error)) (connection as Wire).sync();
    this.#fetched.reject(this.#readsFromClient ? noInput() : error);
  }

  handleReadyForQuery(): void {
    const [columns, rows, affected] = [this.#columns, this.#rows, this.#affected];
    this.#fetched.resolve({ columns, rows, affected, truncated: this.#isTruncated });
  }

  /** Continues when the rows of this step have been processed; a failure of that ends the statement. */
  #passOn(wire: Wire, goOn: () => void): void {
    if (this.#onStep === null || this.#rows.length === 0) {
      goOn();
      return;
    }
    const rows = this.#rows.splice(0);
    this.#step = { rows: rows.length, bytes: this.#bytes };
    this.#bytes = 0;
    this.#onStep(rows, this.#columns).then(goOn, (error: Error) => {
      this.#fetched.reject(error);
      wire.sync();
    });
  }

  #nextRows(): number {
    if (this.#onStep !== null) {
      const { rows, bytes } = this.#step;
      if (rows === 0) return FIRST_STEP_ROWS;
      return Math.max(1, Math.min(2 * rows, SKIPPED_STEP_ROWS, Math.floor((STEP_BYTES * rows) / bytes)));
    }
    if (this.#toSkip > 0) return Math.min(SKIPPED_STEP_ROWS, this.#toSkip);
    // One extra row shows whether there are more.
    return Math.min(STEP_ROWS, (this.#query.maxRows ?? 0) + 1 - this.#rows.length);
  }
}

interface DatabaseError extends Error {
  /** SQLSTATE. */
  readonly code: string;
  readonly position?: string;
  readonly detail?: string;
  readonly hint?: string;
}

function isDatabaseError(error: Error): error is DatabaseError {
  const { code } = error as Partial<DatabaseError>;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && 'severity' in error;
}

function noInput(): QueryFailed {
  const hint = 'Use INSERT, run COPY with psql or your own driver, or load a dump';
  return new QueryFailed(NO_INPUT, FEATURE_NOT_SUPPORTED, { hint });
}

/** NUL would end the statement in PostgreSQL's protocol, and the rest would be misinterpreted. */
function refuseNul(text: string, params: readonly unknown[]): void {
  const at = text.indexOf('\0');
  if (at < 0 && !params.some((value) => asText(value)?.includes('\0'))) return;
  const position = at < 0 ? null : [...text.slice(0, at)].length + 1;
  const hint = 'Remove the character, or store such values as bytea';
  throw new QueryFailed('PostgreSQL cannot store the character U+0000 in text', UNTRANSLATABLE, {
    position,
    hint,
  });
}

/** JSON as a parameter: objects and arrays go as JSON. */
function asText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const NUMBERS = new Set([21, 23, 26, 20, 700, 701]);
const BOOLEAN = 16;
const BYTES = 17;
const JSONS = new Set([114, 3802]);

function jsonOf(row: readonly (string | null)[], columns: readonly Column[]): string {
  return JSON.stringify(valuesOf(row, columns));
}

function valuesOf(row: readonly (string | null)[], columns: readonly Column[]): unknown[] {
  return row.map((value, at) => asJson(value, columns[at]?.typeId ?? 0));
}

/** A value as JSON; unsupported ones stay PostgreSQL's text. */
function asJson(value: string | null, typeId: number): unknown {
  if (value === null) return null;
  if (typeId === BOOLEAN) return value === 't';
  if (typeId === BYTES && value.startsWith('\\x'))
    return Buffer.from(value.slice(2), 'hex').toString('base64');
  if (NUMBERS.has(typeId)) return isExact(value) ? Number(value) : value;
  if (JSONS.has(typeId)) return parsed(value);
  return value;
}

/** Neither NaN nor infinite, nor an integer that would be rounded. */
function isExact(value: string): boolean {
  const number = Number(value);
  return Number.isFinite(number) && (!/^-?\d+$/.test(value) || Number.isSafeInteger(number));
}

/** Numbers in JSON that would be rounded: the value stays text. */
function parsed(value: string): unknown {
  return /\d{16}/.test(value) ? value : JSON.parse(value);
}
