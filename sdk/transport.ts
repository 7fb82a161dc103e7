/** Calls one operation of the API over fetch: typed by openapi.json, rejects with CloudError. */
import type { Calls, Operation } from '../build/sdk/schema.d.ts';
import { noAnswer, notUnderstood, readProblem } from './problem.ts';
import { fetchWithProgress } from './progress.ts';
import { pageSession, type SessionToken } from './session.ts';
import type { CallOptions, Pages, UploadOptions } from './types.ts';

export interface CloudOptions {
  /** `https://cloud.example.com`; default: the origin of the page. Programs outside browsers need it. */
  readonly baseUrl?: string;
  /** Default: the session of the browser, by its cookie and `session`. */
  readonly apiKey?: string;
  /** Default: pageSession(). */
  readonly session?: SessionToken;
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch;
}

export type OperationName = keyof Calls;
export type Result<O extends OperationName> = Calls[O]['result'];

/** The parameters and the result of an operation. */
export interface CallShape {
  readonly method: string;
  /** With `{name}` for each parameter. */
  readonly path: string;
  readonly body: 'json' | 'form' | null;
  readonly query: boolean;
  readonly gives: 'json' | 'pages' | 'text' | 'bytes' | 'socket';
}

interface Request {
  readonly operation: CallShape;
  readonly params: readonly unknown[];
  readonly body?: unknown;
  readonly query: Readonly<Record<string, unknown>>;
  readonly options: UploadOptions & { readonly accept?: string };
}

const OK = 200;
const ACCEPTED = 202;
/** Less than the timeout of common proxies. */
const WAIT_SECONDS = 25;
const READ: CallShape = {
  method: 'GET',
  path: '/api/operations/{id}',
  body: null,
  query: true,
  gives: 'json',
};
const PAGE_ENTRIES = 100;
const LONG_PAGE_ENTRIES = 1000;
const MAX_CHARACTERS = 64 * 2 ** 20;

export class Transport {
  readonly #baseUrl: string;
  readonly #apiKey: string | undefined;
  readonly #session: SessionToken;
  readonly #fetch: typeof globalThis.fetch;
  readonly #tellsProgress: boolean;

  constructor({ baseUrl = '', apiKey, fetch, session = pageSession() }: CloudOptions) {
    this.#baseUrl = baseUrl.replace(/\/+$/, '');
    this.#apiKey = apiKey;
    this.#session = session;
    this.#fetch = fetch ?? globalThis.fetch.bind(globalThis);
    this.#tellsProgress = fetch === undefined && typeof XMLHttpRequest !== 'undefined';
  }

  /** Headers that identify the caller. */
  get credentials(): Record<string, string> {
    if (this.#apiKey !== undefined) return { 'x-api-key': this.#apiKey };
    const token = this.#session.read();
    return token === undefined ? {} : { 'cloudlet-session': token };
  }

  get hasKey(): boolean {
    return this.#apiKey !== undefined;
  }

  /** Sends this session token from now on; undefined: none. */
  signedIn(token: string | undefined): void {
    this.#session.write(token);
  }

  /**
   * Calls an operation. `args`: those of its method (scripts/write-sdk.ts). Throws CloudError, or
   * the reason of the signal.
   */
  call(operation: CallShape, args: readonly unknown[]): unknown {
    const rest = [...args];
    const params = rest.splice(0, paramsOf(operation).length);
    const body = operation.body === null ? undefined : rest.shift();
    const query = (operation.query ? (rest.shift() ?? {}) : {}) as Request['query'];
    const options = (rest.shift() ?? {}) as Request['options'];
    const request: Request = { operation, params, body, query, options };
    if (operation.gives === 'pages') return this.#pages(request);
    if (operation.gives === 'text')
      return this.#ask(request).then((answer) => textOf(answer, request.options));
    if (operation.gives === 'bytes') return this.#ask(request);
    return this.#send(request).then((answer) => answer.body);
  }

  #pages(request: Request): Pages<unknown> {
    const page: Pages<unknown>['page'] = async ({ cursor, limit = PAGE_ENTRIES } = {}) => {
      const query = { ...request.query, limit, cursor };
      const { body, headers } = await this.#send({ ...request, query });
      return { items: body as readonly unknown[], cursor: nextCursor(headers.get('link')) };
    };
    async function* entries() {
      let cursor: string | null | undefined;
      while (cursor !== null) {
        const read = await page({ cursor, limit: LONG_PAGE_ENTRIES });
        yield* read.items;
        if (read.cursor !== null && read.cursor === cursor) throw notUnderstood(OK, {});
        cursor = read.cursor;
      }
    }
    return { page, [Symbol.asyncIterator]: entries, all: () => Array.fromAsync(entries()) };
  }

  /** URL of an operation. Throws TypeError for a parameter that would change the path. */
  url(
    { path }: CallShape,
    params: readonly unknown[],
    query: Readonly<Record<string, unknown>> = {},
  ): string {
    let next = 0;
    const filled = path.replace(/\{(\w+)\}/g, (_, member: string) => segment(member, params[next++]));
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined && value !== null) search.set(key, String(value));
    }
    return this.#baseUrl + filled + (search.size === 0 ? '' : `?${search}`);
  }

  async #send(request: Request) {
    const response = await this.#ask(request);
    const text = await textOf(response, request.options);
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch (cause) {
      throw notUnderstood(response.status, { cause });
    }
    const isBegun = request.options.takesLong === true && response.status === ACCEPTED;
    if (isBegun) body = await this.#endOf(body as Operation, request.options);
    return { body, headers: response.headers };
  }

  /** The result of a call that became an operation. */
  async #endOf(begun: Operation, { signal, onOperation }: CallOptions): Promise<unknown> {
    const query = { wait: onOperation === undefined ? WAIT_SECONDS : 1 };
    for (let now = begun; ; ) {
      if (now.state === 'succeeded') return now.result;
      if (now.state === 'failed') throw readProblem(now.status ?? 0, JSON.stringify(now.error), null);
      onOperation?.(now);
      const next = { operation: READ, params: [now.operation_id], query, options: { signal } };
      now = (await this.#send(next)).body as Operation;
    }
  }

  async #ask(request: Request): Promise<Response> {
    const { signal, onProgress } = request.options;
    const url = this.url(request.operation, request.params, request.query);
    const init = this.#initOf(request);
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
    const text = await textOf(response, request.options);
    throw readProblem(response.status, text, response.headers.get('retry-after'));
  }

  #initOf({ operation, body, options }: Request) {
    const { signal, idempotencyKey, accept, takesLong, range } = options;
    const { gives, method } = operation;
    const headers: Record<string, string> = {
      accept: accept ?? (gives === 'json' || gives === 'pages' ? 'application/json' : '*/*'),
      ...this.credentials,
    };
    const isForm = operation.body === 'form';
    if (body !== undefined && !isForm) headers['content-type'] = 'application/json';
    if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
    if (range !== undefined) headers.range = range;
    if (takesLong === true) headers.prefer = 'respond-async';
    const sent = isForm ? formData(body as Parameters<typeof formData>[0]) : JSON.stringify(body);
    // The cloud never redirects, and another address must not get the key.
    return { method, headers, body: sent, signal: signal ?? null, redirect: 'manual' as const };
  }
}

/** Names of the path parameters, in order. */
export function paramsOf({ path }: CallShape): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name);
}

/** Files come last, so that the server can refuse other fields first. */
function formData(fields: Readonly<Record<string, string | Blob | undefined>>): FormData {
  const form = new FormData();
  const isFile = ([, value]: readonly [string, unknown]) => Number(value instanceof Blob);
  for (const [name, value] of Object.entries(fields).sort((a, b) => isFile(a) - isFile(b))) {
    if (value !== undefined) form.set(name, value);
  }
  return form;
}

/** URLs resolve `..`: ending a session with such an id would close the account. */
function segment(name: string, value: unknown): string {
  const text = String(value ?? '');
  if (['', '.', '..'].includes(text)) throw new TypeError(`${name} cannot be '${text}'`);
  return encodeURIComponent(text);
}

/** The whole body. Throws CloudError if it is longer than any response of the cloud. */
async function textOf(response: Response, { signal }: CallOptions = {}): Promise<string> {
  const [reader, decoder] = [response.body?.getReader(), new TextDecoder()];
  let text = '';
  try {
    for (let piece = await reader?.read(); piece?.done === false; piece = await reader?.read()) {
      text += decoder.decode(piece.value, { stream: true });
      if (text.length > MAX_CHARACTERS) break;
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw noAnswer(error);
  }
  if (text.length <= MAX_CHARACTERS) return text + decoder.decode();
  void reader?.cancel();
  throw notUnderstood(response.status, {});
}

/** From `<…?cursor=…>; rel="next"`. */
function nextCursor(link: string | null): string | null {
  const address = /<([^>]*)>\s*;[^,]*rel="?next"?/.exec(link ?? '')?.[1];
  if (address === undefined) return null;
  return new URL(address, 'http://any').searchParams.get('cursor');
}
