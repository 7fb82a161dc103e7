/**
 * Mixed load on the nodes of a cluster while some of them are killed, and what must hold afterwards. A caller
 * goes on at another node under the same Idempotency-Key when an answer does not come, as a client behind a
 * proxy does.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ADMIN_KEY, type CloudProcess } from './cloud-process.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

type Place = Pick<CloudProcess, 'api'>;

interface Answer {
  readonly status: number;
  readonly text: string;
}

interface Call {
  readonly json?: unknown;
  readonly form?: () => FormData;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer may take as long as an outcome is asked for. */
const CALL_MS = 45_000;
const GIVE_UP_MS = 120_000;
const BUCKET = 'kept';

export class ClusterLoad {
  readonly #nodes: readonly CloudProcess[];
  readonly #proxy: Place | undefined;
  /** Nodes that are being killed, stopped or cut off: nothing is asked there that must be true at once. */
  readonly troubled = new Set<CloudProcess>();
  readonly faults: string[] = [];
  /** Id of an object → content that was acknowledged. */
  readonly #stored = new Map<string, string>();
  readonly #deleted = new Set<string>();
  readonly counts = { uploads: 0, deletions: 0, reads: 0, pairs: 0, accounts: 0, revocations: 0, events: 0 };
  worstRevocationMs = 0;
  #isOver = false;
  #number = 0;

  /** `proxy`: URL in front of all nodes, for calls that any may answer. */
  constructor(nodes: readonly CloudProcess[], proxy?: string) {
    this.#nodes = nodes;
    this.#proxy = proxy === undefined ? undefined : { api: proxy };
  }

  /** Loads the cluster until `work` has ended, then until each call has. */
  async during(receiver: WebhookReceiver, work: () => Promise<void>): Promise<void> {
    await this.#must('POST', '/api/buckets', { json: { name: BUCKET } });
    const hook = await this.#must('POST', '/api/webhooks', { json: { url: receiver.url, events: ['*'] } });
    const webhook = JSON.parse(hook.text).id as string;
    const loops = [
      () => this.#upload(),
      () => this.#upload(),
      () => this.#remove(),
      () => this.#pair(),
      () => this.#register(),
      () => this.#revoke(),
      () => this.#event(webhook),
    ].map((step) => this.#repeat(step));
    try {
      await work();
    } finally {
      this.#isOver = true;
      await Promise.all(loops);
    }
  }

  /** Compares all that was acknowledged with what each node has; to be called once all are up. */
  async check(): Promise<void> {
    for (const [name, content] of this.#stored) {
      for (const node of this.#nodes) {
        const { status, text } = await this.#read(node, name);
        if (status !== 200 || text !== content)
          this.faults.push(`${name}: ${status} instead of ${content}: ${text.slice(0, 200)}`);
      }
    }
    for (const name of this.#deleted) {
      for (const node of this.#nodes) {
        const { status } = await this.#read(node, name);
        if (status !== 404) this.faults.push(`${name} came back: ${status}`);
      }
    }
    const [node] = this.#nodes as [CloudProcess];
    const bucket = JSON.parse((await ask(node, `GET /api/buckets/${BUCKET}`)).text);
    const count = await this.#countObjects(node);
    if (bucket.object_count !== count)
      this.faults.push(`the bucket counts ${bucket.object_count} objects and lists ${count}`);
    await this.#checkLedger(node);
  }

  async #countObjects(node: CloudProcess): Promise<number> {
    const { text } = await ask(node, `GET /api/buckets/${BUCKET}/files`);
    return (JSON.parse(text) as unknown[]).length;
  }

  async #checkLedger(node: CloudProcess): Promise<void> {
    await ask(node, 'POST /api/admin/ledger/verify', { json: {} });
    for (;;) {
      const { text } = await ask(node, 'GET /api/admin/ledger/verify');
      const { running, problem } = JSON.parse(text) as { running: boolean; problem: string | null };
      if (problem !== null) this.faults.push(`the ledger: ${problem}`);
      if (!running) return;
      await sleep(200);
    }
  }

  async #repeat(step: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await step().catch((error: unknown) => this.faults.push(String(error)));
      await sleep(20);
    }
  }

  async #upload(): Promise<void> {
    const name = `object-${++this.#number}`;
    const content = `content of ${name}`;
    const form = () => {
      const body = new FormData();
      body.append('file', new Blob([content]), name);
      return body;
    };
    const { status, text } = await this.#must('POST', `/api/buckets/${BUCKET}/upload`, { form });
    if (status !== 200 && status !== 201) return void this.faults.push(`upload: ${status} ${text}`);
    this.counts.uploads++;
    const { object_id: id } = JSON.parse(text) as { object_id: string };
    this.#stored.set(id, content);
    for (const node of this.#nodes) {
      if (this.troubled.has(node)) continue;
      const read = await this.#read(node, id).catch(() => null);
      if (read === null || this.troubled.has(node) || read.status >= 500) continue;
      this.counts.reads++;
      if (read.status !== 200 || read.text !== content)
        this.faults.push(`${name} was stored, and another node says ${read.status}`);
    }
  }

  async #remove(): Promise<void> {
    const [id] = this.#stored.size > 20 ? this.#stored.keys() : [];
    if (id === undefined) return;
    this.#stored.delete(id);
    const { status, text } = await this.#must('DELETE', `/api/storage/${id}`);
    if (status >= 300) return void this.faults.push(`delete: ${status} ${text}`);
    this.#deleted.add(id);
    this.counts.deletions++;
  }

  /** The same call under the same key at two nodes at once: one effect, and the same answer twice. */
  async #pair(): Promise<void> {
    const json = { name: `pair-${++this.#number}` };
    const headers = { 'idempotency-key': json.name };
    const both = await Promise.all([0, 1].map(() => this.#must('POST', '/api/buckets', { json, headers })));
    const [one, two] = both as [Answer, Answer];
    if (one.status !== 201 || two.status !== 201 || one.text !== two.text)
      this.faults.push(`one key at two nodes: ${one.status} ${one.text} and ${two.status} ${two.text}`);
    this.counts.pairs++;
    // An account may have a thousand.
    const removed = await this.#must('DELETE', `/api/buckets/${json.name}`);
    if (removed.status >= 300) this.faults.push(`remove a bucket: ${removed.status} ${removed.text}`);
  }

  async #register(): Promise<void> {
    const username = `user${++this.#number}`;
    const json = { username, email: `${username}@example.org`, password: 'correct horse battery' };
    const { status, text } = await this.#must('POST', '/api/register', { json });
    if (status !== 201) this.faults.push(`register: ${status} ${text}`);
    this.counts.accounts++;
    await sleep(500);
  }

  async #revoke(): Promise<void> {
    const made = await this.#must('POST', '/api/account/access-keys', {
      json: { name: `key ${++this.#number}`, scopes: ['storage:read'] },
    });
    if (made.status !== 201) return void this.faults.push(`access key: ${made.status} ${made.text}`);
    const { id, api_key: key } = JSON.parse(made.text) as { id: string; api_key: string };
    const headers = { 'x-api-key': key };
    // Each node remembers it now.
    const known = this.#nodes.filter((node) => !this.troubled.has(node));
    await Promise.allSettled(known.map((node) => ask(node, 'GET /api/buckets', { headers })));
    const { status } = await this.#must('DELETE', `/api/account/access-keys/${id}`);
    if (status >= 300) return void this.faults.push(`revoke: ${status}`);
    const began = performance.now();
    for (const node of this.#nodes) {
      for (;;) {
        if (this.troubled.has(node)) break;
        const answer = await ask(node, 'GET /api/buckets', { headers }).catch(() => null);
        if (answer?.status !== 200) break;
        this.worstRevocationMs = Math.max(this.worstRevocationMs, performance.now() - began);
        await sleep(50);
      }
    }
    this.counts.revocations++;
  }

  async #event(webhook: string): Promise<void> {
    const { status, text } = await this.#must('POST', `/api/webhooks/${webhook}/test`);
    if (status >= 300) return void this.faults.push(`event: ${status} ${text}`);
    this.counts.events++;
    await sleep(200);
  }

  #read(node: CloudProcess, id: string): Promise<Answer> {
    return ask(node, `GET /api/storage/${id}/download`);
  }

  /** Asks one node after another, under one key, until one answers with more than "not now". */
  async #must(method: Method, path: string, call: Call = {}): Promise<Answer> {
    const began = performance.now();
    const key = method === 'GET' ? {} : { 'idempotency-key': `key-${++this.#number}` };
    const whole = { ...call, headers: { ...KEY, ...key, ...call.headers } };
    for (;;) {
      const node = this.#proxy ?? (this.#nodes[Math.floor(Math.random() * this.#nodes.length)] as Place);
      const answer = await ask(node, `${method} ${path}`, whole).catch(() => null);
      if (answer !== null && !isNotNow(answer)) return answer;
      if (performance.now() - began > GIVE_UP_MS)
        throw new Error(`${method} ${path}: no answer in ${GIVE_UP_MS / 1000} s, ${answer?.text}`);
      await sleep(50);
    }
  }
}

type Method = 'GET' | 'POST' | 'DELETE';

const KEY = { 'x-api-key': ADMIN_KEY };

/** 503, or 502 of a proxy; or the first call under the key still runs. */
function isNotNow({ status, text }: Answer): boolean {
  return status === 503 || status === 502 || status === 429 || /"idempotency_in_flight"/.test(text);
}

async function ask(node: Place, line: string, { json, form, headers = KEY }: Call = {}): Promise<Answer> {
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
