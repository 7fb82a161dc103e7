/**
 * The digests of a blob: each is computed by a worker thread, while others store the bytes. Here are both
 * sides: who hands out the slots on the event loop, and what a thread does with them.
 */
import { type Digest, type DigestName, type Digests, newDigest } from '../../platform/digests.ts';
import type { Slot } from './slot-pool.ts';
import type { SlotContent } from './slot-writer.ts';

/** Feeds a slot to digests of a stream; the answer to the last one carries them. */
export interface DigestRequest {
  readonly op: 'digest';
  readonly stream: number;
  readonly names: readonly DigestName[];
  readonly slot: SharedArrayBuffer;
  readonly bytes: number;
  readonly last: boolean;
}

/** Forgets the digests of a stream. */
export interface DropDigests {
  readonly op: 'drop digests';
  readonly stream: number;
}

/** A thread that answers these requests. */
interface DigestThread {
  load: number;
  request(request: DigestRequest | DropDigests): Promise<{ readonly digests?: Digests }>;
}

/** How much of a thread a digest takes, in the units of worker-pool.ts; the slowest is given out first. */
const LOADS: readonly (readonly [DigestName, number])[] = [
  ['MD5', 5],
  ['CRC64NVME', 4],
  ['SHA256', 2.5],
  ['SHA1', 2.5],
  ['CRC32', 1],
  ['CRC32C', 1],
];

let nextStream = 0;

/** The digests of one blob. */
export class DigestStreams {
  readonly #stream = nextStream++;
  readonly #names: ReadonlySet<DigestName>;
  /** Digests by their thread; undefined before the first slot. */
  #threads: Map<DigestThread, DigestName[]> | undefined;
  #loads: (readonly [DigestThread, number])[] = [];

  constructor(names: readonly DigestName[]) {
    this.#names = new Set(names);
  }

  get names(): readonly DigestName[] {
    return [...this.#names];
  }

  /** Sends a slot to the threads of all digests. `pick`: the least loaded thread. May throw what it does. */
  send(slot: Slot, { bytes, last }: SlotContent, pick: () => DigestThread): Promise<Digests | undefined>[] {
    const stream = this.#stream;
    this.#threads ??= this.#share(pick);
    return [...this.#threads].map(([thread, names]) =>
      thread
        .request({ op: 'digest', stream, names, slot: slot.memory, bytes, last })
        .then(({ digests }) => digests),
    );
  }

  /** The blob is gone. A thread that is dead has forgotten it. */
  discard(): void {
    for (const thread of this.#threads?.keys() ?? []) {
      thread.request({ op: 'drop digests', stream: this.#stream }).catch(() => {});
    }
  }

  /** Nothing more comes. */
  end(): void {
    for (const [thread, load] of this.#loads) thread.load -= load;
    this.#loads = [];
  }

  #share(pick: () => DigestThread): Map<DigestThread, DigestName[]> {
    const threads = new Map<DigestThread, DigestName[]>();
    for (const [name, load] of LOADS.filter(([name]) => this.#names.has(name))) {
      const thread = pick();
      thread.load += load;
      this.#loads.push([thread, load]);
      threads.set(thread, [...(threads.get(thread) ?? []), name]);
    }
    return threads;
  }
}

const streams = new Map<number, Map<DigestName, Digest>>();

/** On a thread: answers a request for digests. */
export function answerDigests(request: DigestRequest | DropDigests): { readonly digests?: Digests } {
  const { stream } = request;
  if (request.op === 'drop digests') {
    streams.delete(stream);
    return {};
  }
  const { names, slot, bytes, last } = request;
  const digests = streams.get(stream) ?? new Map(names.map((name) => [name, newDigest(name)]));
  const plain = new Uint8Array(slot, 0, bytes);
  for (const digest of digests.values()) digest.update(plain);
  if (!last) {
    streams.set(stream, digests);
    return {};
  }
  streams.delete(stream);
  return {
    digests: Object.fromEntries(
      [...digests].map(([name, digest]) => [name, digest.digest().toString('hex')]),
    ),
  };
}
