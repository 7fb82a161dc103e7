/** Objects that lifecycle rules remove, and whether each removal was reported once: work under a lease. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ask, type ClusterCalls } from './cluster-calls.ts';
import { eventually } from './waiting.ts';
import type { WebhookReceiver } from './webhook-receiver.ts';

/** Settings of the nodes: a day of the rules takes seconds. */
export const EXPIRING_ENV = { CLOUDLET_S3_LIFECYCLE_DAY_SECONDS: '5', CLOUDLET_SWEEP_GRACE_SECONDS: '2' };

const BUCKET = 'expiring';
/** Not stored in the row. */
const BYTES = 20_000;

export class ExpiringLoad {
  readonly #calls: ClusterCalls;
  readonly faults: string[] = [];
  stored = 0;

  constructor(calls: ClusterCalls) {
    this.#calls = calls;
  }

  async prepare(): Promise<void> {
    await this.#calls.must('POST', '/api/buckets', { json: { name: BUCKET } });
    const json = { lifecycle: [{ id: 'all', enabled: true, days: 1 }] };
    await this.#calls.must('PATCH', `/api/buckets/${BUCKET}/settings`, { json });
  }

  async store(): Promise<void> {
    const name = `${BUCKET}-${this.#calls.next()}`;
    const form = () => {
      const body = new FormData();
      body.append('file', new Blob([name.padEnd(BYTES, '.')]), name);
      return body;
    };
    const { status, text } = await this.#calls.must('POST', `/api/buckets/${BUCKET}/upload`, { form });
    if (status === 200) this.stored++;
    else this.faults.push(`${name}: ${status} ${text}`);
  }

  /** Once all nodes are up. */
  async check(receiver: WebhookReceiver): Promise<void> {
    const [node] = this.#calls.nodes;
    if (node === undefined) return;
    await eventually('every object has expired', async () => {
      const { text } = await ask(node, `GET /api/buckets/${BUCKET}`);
      return JSON.parse(text).object_count === 0;
    });
    await eventually('each removal is told', () => toldBy(receiver) >= this.stored);
    await sleep(2000);
    const told = toldBy(receiver);
    if (told !== this.stored)
      this.faults.push(`${this.stored} objects expired, and ${told} removals were told`);
  }
}

/** Removals in all events; an event delivered twice counts once. */
function toldBy(receiver: WebhookReceiver): number {
  const told = receiver.received.map(({ id, body }) => [id, JSON.parse(body)] as const);
  const expired = new Map(told.filter(([, event]) => event.type === 'bucket.objects_expired'));
  return [...expired.values()].reduce((sum, { data }) => sum + data.removed, 0);
}
