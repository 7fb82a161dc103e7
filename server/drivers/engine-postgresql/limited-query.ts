/**
 * One statement by PostgreSQL's extended protocol, which takes no second one behind it, of which only so many
 * rows are fetched. A Submittable of pg, whose own queries fetch all.
 */
import type { Connection } from 'pg';
import { QueryFailed } from '../../databases/engine.ts';

export interface Column {
  readonly name: string;
  /** The id of its type, in pg_type. */
  readonly typeId: number;
  readonly typeModifier: number;
}

export interface Fetched {
  readonly columns: readonly Column[];
  /** As PostgreSQL writes them. */
  readonly rows: readonly (readonly (string | null)[])[];
  readonly affected: number | null;
  readonly truncated: boolean;
}

interface Wanted {
  readonly text: string;
  readonly params: readonly unknown[];
  readonly maxRows: number;
  readonly maxBytes: number;
}

const NO_INPUT = 'COPY FROM STDIN reads what its client sends, and a query over the API sends nothing';
const FEATURE_NOT_SUPPORTED = '0A000';
const UNTRANSLATABLE = '22P05';
/** Fetched at a time: of large rows few more than wanted. */
const STEP_ROWS = 100;
/** What JSON has around a value, at least. */
const JSON_BYTES = 3;
/** Commands whose number of rows is of rows that they changed. */
const CHANGES = /^(?:INSERT|UPDATE|DELETE|MERGE|COPY) (?:\d+ )?(\d+)$/;

/** What pg's connection says, as far as it matters here. */
interface Said {
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

export class LimitedQuery {
  readonly result: Promise<Fetched>;
  readonly #wanted: Wanted;
  readonly #fetched: PromiseWithResolvers<Fetched>;
  #columns: Column[] = [];
  readonly #rows: (string | null)[][] = [];
  #bytes = 0;
  #affected: number | null = null;
  #isTruncated = false;
  #readsFromClient = false;

  constructor(wanted: Wanted) {
    this.#wanted = wanted;
    this.#fetched = Promise.withResolvers();
    this.result = this.#fetched.promise;
    // It may fail before anyone waits for it.
    this.result.catch(() => {});
  }

  submit(connection: Connection): void {
    const wire = connection as Wire;
    const { text, params } = this.#wanted;
    try {
      wire.parse({ text, name: '', types: [] });
      wire.bind({ portal: '', statement: '', values: params.map(asText), valueMapper: asText });
      wire.describe({ type: 'P', name: '' });
      wire.execute({ portal: '', rows: this.#nextRows() });
      wire.flush();
    } catch (error) {
      this.handleError(error as Error, connection);
    }
  }

  handleRowDescription({ fields = [] }: Said): void {
    this.#columns = fields.map(({ name, dataTypeID, dataTypeModifier }) => ({
      name,
      typeId: dataTypeID,
      typeModifier: dataTypeModifier,
    }));
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    const { maxRows, maxBytes } = this.#wanted;
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
    wire.execute({ portal: '', rows: this.#nextRows() });
    wire.flush();
  }

  handleCommandComplete({ text = '' }: Said, connection: Connection): void {
    const match = CHANGES.exec(text);
    // Copied out, they are not changed.
    if (match !== null && !this.#isTruncated) this.#affected = Number(match[1]);
    (connection as Wire).sync();
  }

  handleEmptyQuery(connection: Connection): void {
    (connection as Wire).sync();
  }

  handleCopyInResponse(connection: Connection): void {
    this.#readsFromClient = true;
    (connection as Wire).sendCopyFail(NO_INPUT);
  }

  /** Its bytes are let pass, and not kept. */
  handleCopyData(): void {
    this.#isTruncated = true;
  }

  /** The last that is heard of this query; a connection that is gone does not mind. */
  handleError(error: Error, connection: Connection): void {
    if (isDatabaseError(error)) (connection as Wire).sync();
    this.#fetched.reject(this.#readsFromClient ? noInput() : error);
  }

  handleReadyForQuery(): void {
    const [columns, rows, affected] = [this.#columns, this.#rows, this.#affected];
    this.#fetched.resolve({ columns, rows, affected, truncated: this.#isTruncated });
  }

  #nextRows(): number {
    // One more than wanted tells that there are more.
    return Math.min(STEP_ROWS, this.#wanted.maxRows + 1 - this.#rows.length);
  }
}

interface DatabaseError extends Error {
  /** SQLSTATE. */
  readonly code: string;
  readonly position?: string;
  readonly detail?: string;
  readonly hint?: string;
}

export function isDatabaseError(error: unknown): error is DatabaseError {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) && 'severity' in (error as object);
}

/** The server's error for the tenant. */
export function asQueryFailed(error: DatabaseError): QueryFailed {
  const { message, code, detail, hint } = error;
  const position = error.position === undefined ? null : Number(error.position);
  return new QueryFailed(detail === undefined ? message : `${message}. ${detail}`, code, { position, hint });
}

function noInput(): QueryFailed {
  const hint = 'Use INSERT, run COPY with psql or your own driver, or load a dump';
  return new QueryFailed(NO_INPUT, FEATURE_NOT_SUPPORTED, { hint });
}

/** PostgreSQL's protocol ends a statement there: what came behind would be taken for something else. */
export function refuseNul(text: string, params: readonly unknown[]): void {
  const at = text.indexOf('\0');
  if (at < 0 && !params.some((value) => asText(value)?.includes('\0'))) return;
  const position = at < 0 ? null : [...text.slice(0, at)].length + 1;
  const hint = 'Leave the character out, or keep such values as bytea';
  throw new QueryFailed('PostgreSQL keeps no character U+0000 in text', UNTRANSLATABLE, { position, hint });
}

/** JSON as a parameter: what is no plain value goes as JSON. */
function asText(value: unknown): string | null {
  if (value === null || value === undefined) return null;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

const NUMBERS = new Set([21, 23, 26, 20, 700, 701]);
const BOOLEAN = 16;
const BYTES = 17;
const JSONS = new Set([114, 3802]);

/** A value as JSON can say it; what it cannot stays the text that PostgreSQL writes. */
export function asJson(value: string | null, typeId: number): unknown {
  if (value === null) return null;
  if (typeId === BOOLEAN) return value === 't';
  if (typeId === BYTES && value.startsWith('\\x'))
    return Buffer.from(value.slice(2), 'hex').toString('base64');
  if (NUMBERS.has(typeId)) return isExact(value) ? Number(value) : value;
  if (JSONS.has(typeId)) return parsed(value);
  return value;
}

/** Neither NaN, nor infinite, nor an integer that would be rounded. */
function isExact(value: string): boolean {
  const number = Number(value);
  return Number.isFinite(number) && (!/^-?\d+$/.test(value) || Number.isSafeInteger(number));
}

/** Numbers of JSON beyond what we can hold would change: then it stays text. */
function parsed(value: string): unknown {
  return /\d{16}/.test(value) ? value : JSON.parse(value);
}
