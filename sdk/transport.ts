/** One call of the API over fetch: typed by openapi.json, refused with CloudError. */
import type { Calls } from '../build/sdk/schema.d.ts';
import { noAnswer, notUnderstood, readProblem } from './problem.ts';
import { fetchWithProgress, type ProgressListener } from './progress.ts';

export interface CloudOptions {
  /** `https://cloud.example.com`; default: the origin of the page. Programs outside browsers need it. */
  readonly baseUrl?: string;
  /** Default: the session cookie of the browser. */
  readonly apiKey?: string;
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch;
}

/** The last argument of every call. */
export interface CallOptions {
  /** Ends the call, which rejects with its reason. `AbortSignal.timeout(ms)` limits the time of a call. */
  readonly signal?: AbortSignal | undefined;
  /** A change that is sent again with the same key within 24 hours has one effect. */
  readonly idempotencyKey?: string | undefined;
}

export interface UploadOptions extends CallOptions {
  /** Only browsers tell the progress of an upload; a `fetch` of your own does not. */
  readonly onProgress?: ProgressListener | undefined;
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
  /** Fields of a multipart form, in place of a body. */
  readonly form?: Readonly<Record<string, string | Blob | undefined>>;
  /** Media type of the answer; default: application/json. */
  readonly accept?: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** For the next page; null when this was the last. */
  readonly cursor: string | null;
}

/** A list that is read page by page, or as a whole: `for await (const bucket of cloud.buckets.list())`. */
export interface Pages<T> extends AsyncIterable<T> {
  /** The first page, or the one after `cursor`; at most `limit` entries (default 100). */
  page(options?: { cursor?: string | undefined; limit?: number }): Promise<Page<T>>;
  /** Everything in one array. */
  all(): Promise<T[]>;
}

const PAGE_ENTRIES = 100;
const LONG_PAGE_ENTRIES = 1000;

export class Transport {
  readonly #baseUrl: string;
  readonly #apiKey: string | undefined;
  readonly #fetch: typeof globalThis.fetch;
  readonly #tellsProgress: boolean;

  constructor({ baseUrl = '', apiKey, fetch }: CloudOptions) {
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
    this.#apiKey = apiKey;
    this.#fetch = fetch ?? globalThis.fetch.bind(globalThis);
    this.#tellsProgress = fetch === undefined && typeof XMLHttpRequest !== 'undefined';
  }

  /** Headers that say who calls. */
  get credentials(): Record<string, string> {
    return this.#apiKey === undefined ? {} : { 'x-api-key': this.#apiKey };
  }

  /** Throws CloudError, or the reason of the signal. */
  async json<C extends CallName>(
    name: C,
    input: Input<C> & AnyInput,
    options: UploadOptions | undefined,
  ): Promise<Result<C>> {
    return (await this.#send(name, input, options)).body as Result<C>;
  }

  /** The answer as it comes. Throws as json(). */
  bytes<C extends CallName>(
    name: C,
    input: Input<C> & AnyInput,
    options: CallOptions | undefined,
  ): Promise<Response> {
    return this.#ask(name, { accept: '*/*', ...(input as AnyInput) }, options);
  }

  async text<C extends CallName>(
    name: C,
    input: Input<C> & AnyInput,
    options: CallOptions | undefined,
  ): Promise<string> {
    return textOf(await this.bytes(name, input, options), options);
  }

  pages<C extends CallName>(
    name: C,
    input: Input<C> & AnyInput,
    options: CallOptions | undefined,
  ): Pages<Entry<C>> {
    const page: Pages<Entry<C>>['page'] = async ({ cursor, limit = PAGE_ENTRIES } = {}) => {
      const query = { ...input.query, limit, cursor };
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

  /** Address of a call. Throws TypeError for a parameter that would lead to another call. */
  url(name: CallName, { params = {}, query = {} }: AnyInput): string {
    const path = name.slice(name.indexOf(' ') + 1);
    const filled = path.replace(/\{(\w+)\}/g, (_, member: string) => segment(member, params[member]));
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) search.set(key, String(value));
    }
    return this.#baseUrl + filled + (search.size === 0 ? '' : `?${search}`);
  }

  async #send(name: CallName, input: AnyInput, options?: UploadOptions) {
    const response = await this.#ask(name, input, options);
    const text = await textOf(response, options);
    try {
      return { body: JSON.parse(text), headers: response.headers };
    } catch (cause) {
      throw notUnderstood(response.status, { cause });
    }
  }

  async #ask(name: CallName, input: AnyInput, options: UploadOptions = {}): Promise<Response> {
    const { signal, onProgress } = options;
    const url = this.url(name, input);
    const init = this.#requestOf(name, input, options);
    let response: Response;
    try {
      response =
        onProgress !== undefined && this.#tellsProgress
          ? await fetchWithProgress(url, init, onProgress)
          : await this.#fetch(url, init);
    } catch (error) {
      signal?.throwIfAborted();
      throw noAnswer(error);
    }
    if (response.ok) return response;
    throw readProblem(response.status, await textOf(response, options), response.headers.get('retry-after'));
  }

  #requestOf(name: CallName, input: AnyInput, { signal, idempotencyKey }: CallOptions) {
    const { body, form, accept } = input;
    const headers: Record<string, string> = { accept: accept ?? 'application/json', ...this.credentials };
    if (body !== undefined) headers['content-type'] = 'application/json';
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
    return {
      method: name.slice(0, name.indexOf(' ')),
      headers,
      body: form === undefined ? JSON.stringify(body) : formData(form),
      signal: signal ?? null,
    };
  }
}

function formData(fields: NonNullable<AnyInput['form']>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) form.set(name, value);
  return form;
}

/** URLs resolve `..`: the end of a session named so would close the account. */
function segment(name: string, value: unknown): string {
  const text = String(value ?? '');
  if (['', '.', '..'].includes(text)) throw new TypeError(`${name} cannot be '${text}'`);
  return encodeURIComponent(text);
}

async function textOf(response: Response, { signal }: CallOptions = {}): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    signal?.throwIfAborted();
    throw noAnswer(error);
  }
}

/** From `<…?cursor=…>; rel="next"`. */
function nextCursor(link: string | null): string | null {
  const address = /<([^>]*)>\s*;[^,]*rel="?next"?/.exec(link ?? '')?.[1];
  if (address === undefined) return null;
  return new URL(address, 'http://any').searchParams.get('cursor');
}
