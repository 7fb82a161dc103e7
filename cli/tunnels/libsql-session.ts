/**
 * One session of a SQLite database over HTTP, with the protocol of libSQL's drivers (Hrana 3,
 * pipelines with a baton): transactions and temporary tables last until it is closed.
 */
import { ClientError, EXIT, exitCodeOf } from '../failures.ts';

export interface Answer {
  readonly columns: readonly { readonly name: string }[];
  readonly rows: readonly (readonly unknown[])[];
  /** Rows affected by a change; null: not a change. */
  readonly affected: number | null;
  readonly truncated: boolean;
}

interface Value {
  readonly type: 'null' | 'integer' | 'float' | 'text' | 'blob';
  readonly value?: unknown;
  readonly base64?: string;
}

interface Executed {
  readonly cols: readonly { readonly name: string | null }[];
  readonly rows: readonly (readonly Value[])[];
  readonly affected_row_count: number;
}

type Result =
  | {
      readonly type: 'ok';
      readonly response: { readonly result?: Executed; readonly is_autocommit?: boolean };
    }
  | { readonly type: 'error'; readonly error: { readonly message: string } };

/** Maximum rows shown per statement. */
const MOST_ROWS = 1000;

export class LibsqlSession {
  readonly #url: string;
  readonly #token: string;
  #baton: string | null = null;
  #isInTransaction = false;

  /** `url`: of the database, with a slash at its end. */
  constructor(url: string, token: string) {
    this.#url = url;
    this.#token = token;
  }

  /** Whether a transaction is open after the last statement. */
  get isInTransaction(): boolean {
    return this.#isInTransaction;
  }

  /** Runs one statement. Throws ClientError with SQLite's message. */
  async run(sql: string): Promise<Answer> {
    const asked = [{ type: 'execute', stmt: { sql } }, { type: 'get_autocommit' }];
    const [done, state] = await this.#send(asked);
    if (state?.type === 'ok') this.#isInTransaction = state.response.is_autocommit === false;
    if (done === undefined || done.type === 'error')
      throw new ClientError(done?.error.message ?? 'the database sent no response');
    const { cols = [], rows = [], affected_row_count: affected = 0 } = done.response.result ?? {};
    return {
      columns: cols.map(({ name }) => ({ name: name ?? '' })),
      rows: rows.slice(0, MOST_ROWS).map((row) => row.map(plain)),
      affected: affected === 0 ? null : affected,
      truncated: rows.length > MOST_ROWS,
    };
  }

  /** Rolls back an open transaction. */
  async close(): Promise<void> {
    if (this.#baton !== null) await this.#send([{ type: 'close' }]).catch(() => {});
  }

  async #send(requests: readonly object[]): Promise<readonly Result[]> {
    const response = await fetch(`${this.#url}v3/pipeline`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.#token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ baton: this.#baton, requests }),
    }).catch((error: Error) => {
      throw new ClientError(`the database does not answer: ${error.message}`, EXIT.unavailable);
    });
    const body = (await response.json().catch(() => ({}))) as {
      baton?: string | null;
      results?: readonly Result[];
      error?: string;
      message?: string;
      detail?: string;
    };
    this.#baton = body.baton ?? null;
    if (response.ok) return body.results ?? [];
    const lost = this.#isInTransaction ? '; the transaction is rolled back' : '';
    this.#isInTransaction = false;
    const said = body.detail ?? body.message ?? body.error ?? `status ${response.status}`;
    throw new ClientError(`${said}${lost}`, exitCodeOf(response.status));
  }
}

/** The value as in the query API. */
function plain({ type, value, base64 }: Value): unknown {
  if (type === 'null') return null;
  // Integers are sent as text, because JSON numbers would lose digits.
  if (type === 'integer') return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  return type === 'blob' ? (base64 ?? '') : value;
}
