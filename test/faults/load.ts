/** Mixed work of many clients in parallel, reported to the oracle before and after each request. */
import type { Client } from '../harness/client.ts';
import { contentOf, type Oracle, type Write } from './oracle.ts';

export interface TestBucket {
  readonly name: string;
  readonly versioning: boolean;
  readonly encryption: boolean;
}

/** Every kind of bucket. */
export const BUCKETS: readonly TestBucket[] = [
  { name: 'plain', versioning: false, encryption: false },
  { name: 'sealed', versioning: false, encryption: true },
  { name: 'history', versioning: true, encryption: false },
  { name: 'sealed-history', versioning: true, encryption: true },
];

export async function makeBuckets(client: Client, buckets: readonly TestBucket[] = BUCKETS): Promise<void> {
  for (const bucket of buckets) {
    const { status } = await client.call('/api/buckets', { json: bucket });
    if (status !== 201) throw new Error(`creating ${bucket.name} answered ${status}`);
  }
}

/** Numbers in [0, 1), reproducible from the seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Chosen at random, printed on failure, and set again with FAULTS_SEED. */
export function chooseSeed(): number {
  return Number(process.env.FAULTS_SEED ?? Math.floor(Math.random() * 2 ** 32));
}

/** An amount of work for the chosen tier. */
export function amount(fast: number, full: number): number {
  return process.env.FAULTS === 'full' ? full : fast;
}

/** Rounds of the chosen tier, or FAULTS_ROUNDS when that is set. */
export function rounds(fast: number, full: number): number {
  const chosen = process.env.FAULTS_ROUNDS;
  return chosen === undefined ? amount(fast, full) : Number(chosen);
}

/** Most are small; some are at the limits of the inline and the chunk size, and some have a few MiB. */
function sizeFrom(random: () => number): number {
  const edges = [1, 16_383, 16_384, 16_385, 65_536, 65_537, 131_072];
  const pick = random();
  if (pick < 0.25) return edges[Math.floor(random() * edges.length)] ?? 1;
  if (pick < 0.65) return 1 + Math.floor(random() * 16_384);
  if (pick < 0.92) return 16_385 + Math.floor(random() * 300_000);
  return Math.floor(random() * 4 * 2 ** 20);
}

export interface LoadDeps {
  readonly client: Client;
  readonly oracle: Oracle;
  readonly random: () => number;
  readonly buckets?: readonly TestBucket[];
  readonly clients?: number;
  /** Different names per bucket that are overwritten repeatedly. */
  readonly hotNames?: number;
}

export class Load {
  readonly #deps: Required<LoadDeps>;
  readonly #objectIds = new Map<string, string>();
  #stopped = false;
  #workers: Promise<void>[] = [];
  /** Statuses of answers, with their counts. */
  readonly answers = new Map<number, number>();

  constructor(deps: LoadDeps) {
    this.#deps = { buckets: BUCKETS, clients: 16, hotNames: 12, ...deps };
  }

  start(): void {
    this.#workers = Array.from({ length: this.#deps.clients }, () => this.#work());
  }

  /** No new requests; resolves when those in progress were answered or cut. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#workers);
  }

  async #work(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#step();
      } catch (error) {
        // fetch only reports "failed" when the server is gone. Any other error is a mistake in the test.
        if (!(error instanceof TypeError)) throw error;
        return;
      }
    }
  }

  async #step(): Promise<void> {
    const { random, buckets, hotNames } = this.#deps;
    const bucket = buckets[Math.floor(random() * buckets.length)] as TestBucket;
    const pick = random();
    const hot = `hot/${Math.floor(random() * hotNames)}`;
    if (pick < 0.1) return this.#delete(bucket, hot);
    if (pick < 0.13 && bucket.versioning) return this.#deleteVersion(bucket);
    const name = pick < 0.55 ? hot : `once/${this.#deps.oracle.writes.length}`;
    await this.put(bucket.name, name, sizeFrom(random));
  }

  /** Uploads its own value; resolves with its record once answered. */
  async put(bucket: string, name: string, size: number): Promise<Write> {
    const { client, oracle } = this.#deps;
    const write = oracle.begin({ kind: 'put', bucket, name, size });
    const metadata = JSON.stringify({ w: write.number });
    const { status, body } = await client.upload(bucket, name, contentOf(write.number, size), { metadata });
    oracle.end(write, { status, versionId: body.version_id, detail: body.detail });
    this.#count(status);
    if (status === 200) this.#objectIds.set(`${bucket}/${name}`, body.object_id);
    return write;
  }

  async #delete(bucket: TestBucket, name: string): Promise<void> {
    const objectId = this.#objectIds.get(`${bucket.name}/${name}`);
    if (objectId === undefined) return;
    const { client, oracle } = this.#deps;
    const write = oracle.begin({ kind: 'delete', bucket: bucket.name, name });
    const { status, body } = await client.call(`/api/storage/${objectId}`, { method: 'DELETE' });
    oracle.end(write, { status, versionId: body.version_id, detail: body.detail });
    this.#count(status);
  }

  async #deleteVersion(bucket: TestBucket): Promise<void> {
    const { client, oracle, random } = this.#deps;
    const from = Math.floor(random() * oracle.writes.length);
    const put = oracle.writes
      .slice(from)
      .find((write) => write.kind === 'put' && write.bucket === bucket.name && write.outcome === 'acked');
    if (put === undefined) return;
    const objectId = this.#objectIds.get(`${put.bucket}/${put.name}`);
    if (objectId === undefined) return;
    const { bucket: where, name, number: target } = put;
    const write = oracle.begin({ kind: 'delete-version', bucket: where, name, target });
    const path = `/api/storage/${objectId}?version_id=${put.versionId}`;
    const { status, body } = await client.call(path, { method: 'DELETE' });
    oracle.end(write, { status, detail: body.detail });
    this.#count(status);
  }

  #count(status: number): void {
    this.answers.set(status, (this.answers.get(status) ?? 0) + 1);
  }
}
