/** Running statements of the API, listed and cancelled by id. In memory: they end with Cloudlet. */
import { AppError, invalidField, isAppError } from '../../platform/errors.ts';
import { randomBase62 } from '../../platform/ids.ts';

const ID_CHARACTERS = 16;
const SHOWN_CHARACTERS = 200;

/** The database that runs a statement, and the query id that the caller chose. */
export interface QueryPlace {
  readonly accountId: number;
  readonly databaseId: string;
  /** undefined: a random one. */
  readonly queryId: string | undefined;
}

export interface RunningQuery {
  readonly queryId: string;
  /** The beginning of the statement, or of the command as JSON. */
  readonly statement: string;
  readonly readOnly: boolean;
  /** Unix time in ms. */
  readonly startedAt: number;
}

interface Entry extends RunningQuery {
  readonly abort: AbortController;
  readonly over: Promise<void>;
}

type About = Pick<RunningQuery, 'readOnly' | 'startedAt'> & { readonly statement: unknown };

export class RunningQueries {
  /** Running queries by account and database, then by id. */
  readonly #places = new Map<string, Map<string, Entry>>();

  /**
   * Runs `work` with a signal that cancel() and `signal` abort. Throws `operation_cancelled` after cancel(),
   * `invalid_request` while a query of that id runs.
   */
  async run<T>(
    { queryId = randomBase62(ID_CHARACTERS), ...place }: QueryPlace,
    { signal, ...about }: About & { readonly signal: AbortSignal },
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const key = keyOf(place);
    const here = this.#places.get(key) ?? new Map<string, Entry>();
    if (here.has(queryId)) throw invalidField('query_id', 'a query with this id is running: choose another');
    const abort = new AbortController();
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const entry = { ...about, statement: beginningOf(about.statement), queryId, abort, over };
    this.#places.set(key, here.set(queryId, entry));
    try {
      return await work(AbortSignal.any([signal, abort.signal]));
    } catch (error) {
      const { reason } = abort.signal;
      throw isAppError(reason, 'operation_cancelled') ? reason : error;
    } finally {
      here.delete(queryId);
      if (here.size === 0) this.#places.delete(key);
      resolve();
    }
  }

  /** The oldest first. */
  list(place: Omit<QueryPlace, 'queryId'>): readonly RunningQuery[] {
    return [...(this.#places.get(keyOf(place))?.values() ?? [])];
  }

  /** Resolves when the query has ended. Throws `not_found` if none of that id runs. */
  async cancel({ queryId = '', ...place }: QueryPlace): Promise<RunningQuery> {
    const entry = this.#places.get(keyOf(place))?.get(queryId);
    if (entry === undefined)
      throw new AppError('not_found', `No query ${queryId} of yours is running in this database`, {
        hint: 'The query may have ended. List the running queries with GET …/queries',
      });
    entry.abort.abort(new AppError('operation_cancelled', 'The query was cancelled'));
    await entry.over;
    return entry;
  }
}

const keyOf = ({ accountId, databaseId }: Omit<QueryPlace, 'queryId'>) => `${accountId} ${databaseId}`;

function beginningOf(statement: unknown): string {
  const text = typeof statement === 'string' ? statement : JSON.stringify(statement ?? '');
  return text.slice(0, SHOWN_CHARACTERS).toWellFormed();
}
