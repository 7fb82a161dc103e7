/** One call of the API over fetch: typed by openapi.json, refused with CloudError. */
import type { Calls } from '../build/sdk/schema.d.ts';
import { noAnswer, readProblem } from './problem.ts';

export interface CloudOptions {
  /** `https://cloud.example.com`; default: the origin of the page. */
  readonly baseUrl?: string;
  /** Default: the session cookie of the browser. */
  readonly apiKey?: string;
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch;
}

/** What any call may take besides its own input. */
export interface CallOptions {
  readonly signal?: AbortSignal;
  /** A POST with the same key within 24 hours has one effect. */
  readonly idempotencyKey?: string;
  /** Type of the answer, where a call has several; default: application/json. */
  readonly accept?: string;
}

export type CallName = keyof Calls;
export type Input<C extends CallName> = Calls[C]['input'];
export type Result<C extends CallName> = Calls[C]['result'];
/** Calls that answer with a list, by what is in it. */
export type Entry<C extends CallName> = Result<C> extends readonly (infer T)[] ? T : never;

interface AnyInput {
  readonly params?: Readonly<Record<string, unknown>>;
  readonly query?: Readonly<Record<string, unknown>>;
  readonly body?: unknown;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** For the next page; null when this was the last. */
  readonly cursor: string | null;
}

/** A list that is read page by page, or as a whole: `for await (const bucket of cloud.buckets.list())`. */
export interface Pages<T> extends AsyncIterable<T> {
  /** The first page, or the one after `cursor`; at most `limit` entries (default 100). */
  page(options?: { cursor?: string | undefined; limit?: number } & CallOptions): Promise<Page<T>>;
  /** Everything in one array. */
  all(): Promise<T[]>;
}

const PAGE_ENTRIES = 100;
const LONG_PAGE_ENTRIES = 1000;

export class Transport {
  readonly baseUrl: string;
  readonly #apiKey: string | undefined;
  readonly #fetch: typeof globalThis.fetch;

  constructor({ baseUrl = '', apiKey, fetch = globalThis.fetch.bind(globalThis) }: CloudOptions) {
    this.baseUrl = baseUrl.replace(/\/+$/, '');
    this.#apiKey = apiKey;
    this.#fetch = fetch;
  }

  /** Headers that say who calls. */
  get credentials(): Record<string, string> {
    return this.#apiKey === undefined ? {} : { 'x-api-key': this.#apiKey };
  }

  /** Throws CloudError, or the reason of `signal`. */
  async json<C extends CallName>(
    name: C,
    input: Input<C> & AnyInput,
    options?: CallOptions,
  ): Promise<Result<C>> {
    return (await this.#send(name, input, options)).body as Result<C>;
  }

  /** The answer as it comes, for bytes and text. Throws as json(). */
  bytes<C extends CallName>(name: C, input: Input<C> & AnyInput, options?: CallOptions): Promise<Response> {
    return this.#ask(name, input, options);
  }

  async text<C extends CallName>(
    name: C,
    input: Input<C> & AnyInput,
    options?: CallOptions,
  ): Promise<string> {
    return (await this.#ask(name, input, options)).text();
  }

  pages<C extends CallName>(name: C, input: Input<C> & AnyInput): Pages<Entry<C>> {
    const page: Pages<Entry<C>>['page'] = async ({ cursor, limit = PAGE_ENTRIES, ...options } = {}) => {
      const query = { ...input.query, limit, ...(cursor === undefined ? {} : { cursor }) };
      const { body, headers } = await this.#send(name, { ...input, query }, options);
      return { items: body as readonly Entry<C>[], cursor: nextCursor(headers.get('link')) };
    };
    async function* entries() {
      let cursor: string | null | undefined;
      while (cursor !== null) {
        const read = await page({ cursor, limit: LONG_PAGE_ENTRIES });
        yield* read.items;
        cursor = read.cursor;
      }
    }
    return { page, [Symbol.asyncIterator]: entries, all: () => Array.fromAsync(entries()) };
  }

  /** Path and query of a call. */
  url(name: CallName, { params = {}, query = {} }: AnyInput): string {
    const path = name.slice(name.indexOf(' ') + 1);
    const filled = path.replace(/\{(\w+)\}/g, (_, member: string) =>
      encodeURIComponent(String(params[member])),
    );
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) search.set(key, String(value));
    }
    return this.baseUrl + filled + (search.size === 0 ? '' : `?${search}`);
  }

  async #send(name: CallName, input: AnyInput, options?: CallOptions) {
    const response = await this.#ask(name, input, options);
    try {
      return { body: await response.json(), headers: response.headers };
    } catch (error) {
      options?.signal?.throwIfAborted();
      throw noAnswer(error);
    }
  }

  async #ask(
    name: CallName,
    input: AnyInput,
    { signal, idempotencyKey, accept = 'application/json' }: CallOptions = {},
  ): Promise<Response> {
    const headers: Record<string, string> = { accept, ...this.credentials };
    if (input.body !== undefined) headers['content-type'] = 'application/json';
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
    const init: RequestInit = { method: name.slice(0, name.indexOf(' ')), headers };
    if (input.body !== undefined) init.body = JSON.stringify(input.body);
    if (signal !== undefined) init.signal = signal;
    let response: Response;
    try {
      response = await this.#fetch(this.url(name, input), init);
    } catch (error) {
      signal?.throwIfAborted();
      throw noAnswer(error);
    }
    if (response.ok) return response;
    throw readProblem(response.status, await response.text(), response.headers.get('retry-after'));
  }
}

/** From `<…?cursor=…>; rel="next"`. */
function nextCursor(link: string | null): string | null {
  const address = /<([^>]*)>\s*;[^,]*rel="?next"?/.exec(link ?? '')?.[1];
  if (address === undefined) return null;
  return new URL(address, 'http://any').searchParams.get('cursor');
}
