/** Calls to the nodes of a cluster while some of them are killed, as from a client behind a proxy. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_KEY, type CloudProcess } from './cloud-process.ts';
import { OpenWork } from './open-work.ts';

type Place = Pick<CloudProcess, 'api'>;

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export interface Call {
  readonly json?: unknown;
  readonly form?: () => FormData;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface FailedCall {
  /** URL of the node. */
  readonly at: string;
  /** `POST /api/buckets`. */
  readonly line: string;
  /** '' where there was no answer. */
  readonly code: string;
  readonly text: string;
}

export type Method = 'GET' | 'POST' | 'DELETE' | 'PATCH';

/** An answer may take as long as the call may wait for an outcome. */
export const CALL_MS = 45_000;
const GIVE_UP_MS = 120_000;
const KEY = { 'x-api-key': ADMIN_KEY };

export class ClusterCalls {
  readonly nodes: readonly CloudProcess[];
  /**
   * Nodes being killed, stopped or cut off: they are not asked for anything that must be true immediately.
   */
  readonly troubled = new Set<CloudProcess>();
  readonly open = new OpenWork();
  /** Calls that a node in no trouble did not answer, or with 5xx; each was sent again. */
  readonly failed: FailedCall[] = [];
  readonly #proxy: Place | undefined;
  #number = 0;

  /** `proxy`: URL in front of all nodes, for calls that any node may answer. */
  constructor(nodes: readonly CloudProcess[], proxy?: string) {
    this.nodes = nodes;
    this.#proxy = proxy === undefined ? undefined : { api: proxy };
  }

  /** A unique number, for names. */
  next(): number {
    return ++this.#number;
  }

  /** Calls one node after another, with the same key, until one answers with more than "not now". */
  async must(method: Method, path: string, call: Call = {}): Promise<Answer> {
    const any = () => this.#proxy ?? (this.nodes[Math.floor(Math.random() * this.nodes.length)] as Place);
    return this.mustAt(any, [method, path], call);
  }

  /** The same at the nodes returned by `place`. */
  mustAt(place: () => Place, line: [Method, string], call: Call = {}): Promise<Answer> {
    return this.open.named(line.join(' '), () => this.#mustAt(place, line, call));
  }

  async #mustAt(place: () => Place, [method, path]: [Method, string], call: Call): Promise<Answer> {
    const began = performance.now();
    const key = method === 'GET' ? {} : { 'idempotency-key': `key-${this.next()}` };
    const whole = { ...call, headers: { ...KEY, ...key, ...call.headers } };
    for (;;) {
      const at = place();
      const answer = await ask(at, `${method} ${path}`, whole).catch((error) => String(error.cause ?? error));
      if (typeof answer === 'object' && !isNotNow(answer)) return answer;
      this.#note(at, `${method} ${path}`, answer);
      if (performance.now() - began > GIVE_UP_MS)
        throw new Error(`${method} ${path}: no answer in ${GIVE_UP_MS / 1000} s, ${textOf(answer)}`);
      await sleep(50);
    }
  }

  #note(at: Place, line: string, answer: Answer | string): void {
    const isOwn = this.nodes.some((node) => node === at && !this.troubled.has(node));
    if (!isOwn || (typeof answer === 'object' && answer.status < 500)) return;
    const [, code = ''] = /"code":"(\w+)"/.exec(textOf(answer)) ?? [];
    this.failed.push({ at: at.api, line, code, text: textOf(answer).slice(0, 200) });
  }
}

const textOf = (answer: Answer | string) => (typeof answer === 'object' ? answer.text : answer);

/** 503, or 502 of a proxy; or the first call with the key is still running. */
function isNotNow({ status, text }: Answer): boolean {
  return status === 503 || status === 502 || status === 429 || /"idempotency_in_flight"/.test(text);
}

/** One request, by default as administrator. Rejects if there is no answer. */
export async function ask(
  node: Place,
  line: string,
  { json, form, headers = KEY }: Call = {},
): Promise<Answer> {
  const [method = '', path] = line.split(' ');
  const isJson = json !== undefined;
  const body = isJson ? JSON.stringify(json) : form?.();
  const response = await fetch(`${node.api}${path}`, {
    method,
    headers: { ...headers, ...(isJson ? { 'content-type': 'application/json' } : {}) },
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.timeout(CALL_MS),
  });
  return { status: response.status, text: await response.text() };
}
