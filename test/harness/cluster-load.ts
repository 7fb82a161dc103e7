/**
 * Mixed load on the nodes of a cluster while some of them are killed, and the invariants afterwards. A caller
 * without an answer continues at another node with the same Idempotency-Key, like a client behind a proxy.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { patienceMs } from '../../server/platform/host/host-facts.ts';
import type { CloudProcess } from './cloud-process.ts';
import { type Answer, ask, type Call, ClusterCalls, type FailedCall, type Method } from './cluster-calls.ts';
import { ClusterDomains } from './cluster-domains.ts';
import { ExpiringLoad } from './expiring-load.ts';
import type { OpenWork } from './open-work.ts';
import { eventually } from './waiting.ts';
import type { Received, WebhookReceiver } from './webhook-receiver.ts';

const BUCKET = 'kept';
/** An undisturbed node answers long before. */
const NEVER_MS = 60_000;

interface How {
  /** URL in front of all nodes, for calls that any node may answer. */
  readonly proxy?: string | undefined;
  /** Also S3, credits, a database at the host, and rules for which the nodes have EXPIRING_ENV. */
  readonly isMixed?: boolean;
}

export class ClusterLoad {
  readonly #nodes: readonly CloudProcess[];
  readonly #calls: ClusterCalls;
  readonly #domains: ClusterDomains | undefined;
  readonly #expiring: ExpiringLoad | undefined;
  readonly faults: string[] = [];
  /** Id of an object → acknowledged content. */
  readonly #stored = new Map<string, string>();
  readonly #deleted = new Set<string>();
  readonly counts = { uploads: 0, deletions: 0, reads: 0, pairs: 0, accounts: 0, revocations: 0, events: 0 };
  worstRevocationMs = 0;
  #isOver = false;

  constructor(nodes: readonly CloudProcess[], { proxy, isMixed = false }: How = {}) {
    this.#nodes = nodes;
    this.#calls = new ClusterCalls(nodes, proxy);
    this.#domains = isMixed ? new ClusterDomains(this.#calls) : undefined;
    this.#expiring = isMixed ? new ExpiringLoad(this.#calls) : undefined;
  }

  get troubled(): Set<CloudProcess> {
    return this.#calls.troubled;
  }

  /** See ClusterCalls. */
  get failed(): readonly FailedCall[] {
    return this.#calls.failed;
  }

  get open(): OpenWork {
    return this.#calls.open;
  }

  /** Completed calls of each kind. */
  get done(): Readonly<Record<string, number>> {
    const stored = this.#expiring === undefined ? {} : { expiring: this.#expiring.stored };
    return { ...this.counts, ...this.#domains?.counts, ...stored };
  }

  /** Loads the cluster until `work` has ended, then until each call has. SIGUSR2 prints the open calls. */
  async during(receiver: WebhookReceiver, work: () => Promise<void>): Promise<void> {
    await this.#must('POST', '/api/buckets', { json: { name: BUCKET } });
    const hook = await this.#must('POST', '/api/webhooks', { json: { url: receiver.url, events: ['*'] } });
    const webhook = JSON.parse(hook.text).id as string;
    await this.#domains?.prepare();
    await this.#expiring?.prepare();
    const steps: Record<string, () => Promise<void>> = {
      ...this.#domains?.steps,
      upload: () => this.#upload(),
      'another upload': () => this.#upload(),
      remove: () => this.#remove(),
      pair: () => this.#pair(),
      register: () => this.#register(),
      revoke: () => this.#revoke(),
      event: () => this.#event(webhook),
    };
    const expiring = this.#expiring;
    if (expiring !== undefined) steps.expiring = () => expiring.store();
    const loops = Object.entries(steps).map(([name, step]) => this.#repeat(name, step));
    const noMoreLists = this.open.listOnSignal();
    try {
      await work();
    } finally {
      this.#isOver = true;
      await this.open.all(loops);
      noMoreLists();
    }
  }

  /**
   * Compares all acknowledged data with the data of each node, and the deliveries with the events; call it
   * once all are up. `troubles`: the number of disturbed nodes.
   */
  async check(receiver: WebhookReceiver, troubles: number): Promise<void> {
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
    const sizes = this.#lengths();
    if (bucket.size !== sizes) this.faults.push(`the bucket counts ${bucket.size} bytes instead of ${sizes}`);
    await this.#domains?.check();
    await this.#expiring?.check(receiver);
    await this.#checkDeliveries(receiver, troubles);
    await this.#checkLedger(node);
    this.faults.push(...(this.#domains?.faults ?? []), ...(this.#expiring?.faults ?? []));
  }

  #lengths(): number {
    return [...this.#stored.values()].reduce((sum, content) => sum + content.length, 0);
  }

  /** Each event arrives, and twice only if a node was disturbed between the delivery and its record. */
  async #checkDeliveries({ received }: WebhookReceiver, troubles: number): Promise<void> {
    const ids = () => new Set(received.filter(isTest).map(({ id }) => id));
    for (let i = 0; i < 100 && ids().size < this.counts.events; i++) await sleep(200);
    // A second delivery would have arrived by now.
    await sleep(2000);
    if (ids().size !== this.counts.events)
      this.faults.push(`${ids().size} of ${this.counts.events} events were delivered`);
    const most = new Set(received.map(({ id }) => id)).size * 1.01 + troubles;
    if (received.length > most) this.faults.push(`${received.length} deliveries, at most ${most}`);
  }

  async #countObjects(node: CloudProcess): Promise<number> {
    const { text } = await ask(node, `GET /api/buckets/${BUCKET}/files`);
    return (JSON.parse(text) as unknown[]).length;
  }

  async #checkLedger(node: CloudProcess): Promise<void> {
    await ask(node, 'POST /api/admin/ledger/verify', { json: {} });
    await eventually('the ledger is verified', async () => {
      const { text } = await ask(node, 'GET /api/admin/ledger/verify');
      const { running, problem } = JSON.parse(text) as { running: boolean; problem: string | null };
      if (problem !== null) this.faults.push(`the ledger: ${problem}`);
      return !running;
    });
  }

  async #repeat(name: string, step: () => Promise<void>): Promise<void> {
    while (!this.#isOver) {
      await this.open.named(name, step).catch((error: unknown) => this.faults.push(`${name}: ${error}`));
      await sleep(20);
    }
  }

  async #upload(): Promise<void> {
    const name = `object-${this.#calls.next()}`;
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
      if (read === null || this.troubled.has(node) || read.status === 503) continue;
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

  /** The same call with the same key at two nodes at once: one effect, and the same answer twice. */
  async #pair(): Promise<void> {
    const name = `pair-${this.#calls.next()}`;
    await this.#atTwo('/api/buckets', name, { json: { name } });
    const form = () => {
      const body = new FormData();
      body.append('file', new Blob(['the same bytes']), 'file');
      return body;
    };
    await this.#atTwo(`/api/buckets/${name}/upload`, `${name}-upload`, { form });
    this.counts.pairs++;
    const { text } = await this.#must('GET', `/api/buckets/${name}`);
    const { version_count: versions } = JSON.parse(text) as { version_count: number };
    if (versions !== 1) this.faults.push(`one key at two nodes: ${versions} versions`);
    // An account may have a thousand.
    const removed = await this.#must('DELETE', `/api/buckets/${name}?force=true`);
    if (removed.status >= 300) this.faults.push(`remove a bucket: ${removed.status} ${removed.text}`);
  }

  async #atTwo(path: string, key: string, call: Call): Promise<void> {
    const headers = { 'idempotency-key': key };
    const from = this.#calls.next();
    const both = await Promise.all(
      [0, 1].map((i) => {
        let turn = from + i;
        const place = () => this.#nodes[turn++ % this.#nodes.length] as CloudProcess;
        return this.#calls.mustAt(place, ['POST', path], { ...call, headers });
      }),
    );
    const [one, two] = both as [Answer, Answer];
    if (one.status >= 300 || two.status >= 300 || one.text !== two.text)
      this.faults.push(`one key at two nodes: ${one.status} ${one.text} and ${two.status} ${two.text}`);
  }

  async #register(): Promise<void> {
    const username = `user${this.#calls.next()}`;
    const json = { username, email: `${username}@example.org`, password: 'correct horse battery' };
    const { status, text } = await this.#must('POST', '/api/register', { json });
    if (status !== 201) this.faults.push(`register: ${status} ${text}`);
    this.counts.accounts++;
    await sleep(500);
  }

  async #revoke(): Promise<void> {
    const made = await this.#must('POST', '/api/account/access-keys', {
      json: { name: `key ${this.#calls.next()}`, scopes: ['storage:read'] },
    });
    if (made.status !== 201) return void this.faults.push(`access key: ${made.status} ${made.text}`);
    const { id, api_key: key } = JSON.parse(made.text) as { id: string; api_key: string };
    const headers = { 'x-api-key': key };
    // Each node has it in memory now.
    const known = this.#nodes.filter((node) => !this.troubled.has(node));
    await Promise.allSettled(known.map((node) => ask(node, 'GET /api/buckets', { headers })));
    const { status } = await this.#must('DELETE', `/api/account/access-keys/${id}`);
    if (status >= 300) return void this.faults.push(`revoke: ${status}`);
    const began = performance.now();
    for (const node of this.#nodes) {
      const where = `key ${id} refused by ${node.api}`;
      await this.open.named(where, () => this.#refusedBy(node, headers, began));
    }
    this.counts.revocations++;
  }

  /**
   * Until this node refuses the key, is disturbed, or has accepted it for so long that it never will refuse.
   */
  async #refusedBy(node: CloudProcess, headers: Record<string, string>, began: number): Promise<void> {
    let last = 'nothing';
    while (!this.troubled.has(node)) {
      // A node may stand still with a call that it has admitted.
      const askedMs = performance.now() - began;
      if (askedMs > patienceMs(NEVER_MS))
        return void this.faults.push(`a deleted key is not refused by ${node.api}, which says ${last}`);
      const answer = await ask(node, 'GET /api/buckets', { headers }).catch(String);
      if (typeof answer === 'object' && answer.status === 401) return;
      last = typeof answer === 'object' ? `${answer.status} ${answer.text.slice(0, 200)}` : answer;
      if (typeof answer === 'object' && answer.status === 200)
        this.worstRevocationMs = Math.max(this.worstRevocationMs, askedMs);
      await sleep(50);
    }
  }

  async #event(webhook: string): Promise<void> {
    const { status, text } = await this.#must('POST', `/api/webhooks/${webhook}/test`);
    if (status >= 300) return void this.faults.push(`event: ${status} ${text}`);
    this.counts.events++;
    await sleep(200);
  }

  #must(method: Method, path: string, call: Call = {}): Promise<Answer> {
    return this.#calls.must(method, path, call);
  }

  #read(node: CloudProcess, id: string): Promise<Answer> {
    return ask(node, `GET /api/storage/${id}/download`);
  }
}

function isTest({ body }: Received): boolean {
  return JSON.parse(body).type === 'webhook.test';
}
