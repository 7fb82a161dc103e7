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
    (connection as Wire).sendCopyFail('COPY FROM STDIN has nothing to read here: load a dump instead');
  }

  /** Its bytes are let pass, and not kept. */
  handleCopyData(): void {
    this.#isTruncated = true;
  }

  /** The last that is heard of this query; a connection that is gone does not mind. */
  handleError(error: Error, connection: Connection): void {
    if (isDatabaseError(error)) (connection as Wire).sync();
    this.#fetched.reject(error);
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
  const more = [error.detail, error.hint].filter((part) => part !== undefined);
  const position = error.position === undefined ? null : Number(error.position);
  return new QueryFailed([error.message, ...more].join('. '), error.code, position);
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
