/**
 * The digests of a blob: each is computed by a worker thread, while others store the bytes. Both
 * sides are here: the event loop, which distributes the slots, and the threads.
 */
import { type Digest, type DigestName, type Digests, newDigest } from '../../../libs/s3-wire/index.ts';
import type { Slot } from './slot-pool.ts';
import type { SlotContent } from './slot-writer.ts';

/** Feeds a slot to a stream's digests; the reply to the last one contains them. */
export interface DigestRequest {
  readonly op: 'digest';
  readonly stream: number;
  readonly names: readonly StreamName[];
  readonly slot: SharedArrayBuffer;
  readonly bytes: number;
  readonly last: boolean;
  readonly cuts: readonly number[];
}

/** `PIECES`: the SHA-256 of each piece of the blob, answered with the slot in which the piece ends. */
type StreamName = DigestName | 'PIECES';

/** The answer to a slot. */
export interface DigestReply {
  readonly digests?: Digests;
  /** SHA-256 of the pieces that end in the slot, hex. */
  readonly pieces?: readonly string[];
}

/** Drops the digests of a stream. */
export interface DropDigests {
  readonly op: 'drop digests';
  readonly stream: number;
}

/** A thread that answers these requests. */
interface DigestThread {
  load: number;
  request(request: DigestRequest | DropDigests): Promise<DigestReply>;
}

/** A digest's share of a thread, in units of worker-pool.ts; the slowest is assigned first. */
const LOADS: readonly (readonly [StreamName, number])[] = [
  ['MD5', 5],
  ['CRC64NVME', 4],
  ['SHA256', 2.5],
  ['PIECES', 2.5],
  ['SHA1', 2.5],
  ['CRC32', 1],
  ['CRC32C', 1],
];

let nextStream = 0;

/** The digests of one blob. */
export class DigestStreams {
  readonly #stream = nextStream++;
  readonly #names: ReadonlySet<DigestName>;
  readonly #onPieces: ((hashes: readonly string[]) => void) | undefined;
  /** Digests by their thread; undefined before the first slot. */
  #threads: Map<DigestThread, StreamName[]> | undefined;
  #loads: (readonly [DigestThread, number])[] = [];

  /** `onPieces` must not throw; it gets the SHA-256 of the pieces, in order. */
  constructor(names: readonly DigestName[], onPieces?: (hashes: readonly string[]) => void) {
    this.#names = new Set(names);
    this.#onPieces = onPieces;
  }

  get names(): readonly DigestName[] {
    return [...this.#names];
  }

  /**
   * Sends a slot to the threads of all digests. `pick`: the least loaded thread; its errors are passed on.
   */
  send(slot: Slot, content: SlotContent, pick: () => DigestThread): Promise<Digests | undefined>[] {
    const stream = this.#stream;
    this.#threads ??= this.#share(pick);
    return [...this.#threads].map(([thread, names]) =>
      thread
        .request({ op: 'digest', stream, names, slot: slot.memory, ...content })
        .then((reply) => this.took(reply)),
    );
  }

  /** Passes on the pieces of an answer. */
  took({ digests, pieces = [] }: DigestReply): Digests | undefined {
    if (pieces.length > 0) this.#onPieces?.(pieces);
    return digests;
  }

  /** The blob is gone. A dead thread no longer has it. */
  discard(): void {
    for (const thread of this.#threads?.keys() ?? []) {
      thread.request({ op: 'drop digests', stream: this.#stream }).catch(() => {});
    }
  }

  /** The stream has ended. */
  end(): void {
    for (const [thread, load] of this.#loads) thread.load -= load;
    this.#loads = [];
  }

  #share(pick: () => DigestThread): Map<DigestThread, StreamName[]> {
    const threads = new Map<DigestThread, StreamName[]>();
    const isAsked = (name: StreamName) =>
      name === 'PIECES' ? this.#onPieces !== undefined : this.#names.has(name);
    for (const [name, load] of LOADS.filter(([name]) => isAsked(name))) {
      const thread = pick();
      thread.load += load;
      this.#loads.push([thread, load]);
      threads.set(thread, [...(threads.get(thread) ?? []), name]);
    }
    return threads;
  }
}

const streams = new Map<number, Map<StreamName, Digest>>();

const begun = (name: StreamName): Digest => newDigest(name === 'PIECES' ? 'SHA256' : name);

/** On a thread: answers a request for digests. */
export function answerDigests(request: DigestRequest | DropDigests): DigestReply {
  const { stream } = request;
  if (request.op === 'drop digests') {
    streams.delete(stream);
    return {};
  }
  const { names, slot, bytes, last, cuts } = request;
  const digests = streams.get(stream) ?? new Map(names.map((name) => [name, begun(name)]));
  const plain = new Uint8Array(slot, 0, bytes);
  for (const [name, digest] of digests) if (name !== 'PIECES') digest.update(plain);
  const open = digests.get('PIECES');
  const cutUp = open === undefined ? undefined : piecesOf(plain, cuts, open);
  if (!last) {
    if (cutUp !== undefined) digests.set('PIECES', cutUp.open);
    streams.set(stream, digests);
    return cutUp === undefined ? {} : { pieces: cutUp.pieces };
  }
  streams.delete(stream);
  digests.delete('PIECES');
  return {
    digests: Object.fromEntries(
      [...digests].map(([name, digest]) => [name, digest.digest().toString('hex')]),
    ),
    ...(cutUp !== undefined && { pieces: cutUp.pieces }),
  };
}

/** The SHA-256 of each piece that ends at one of `cuts`, and of the rest. */
export function piecesOf(
  plain: Uint8Array,
  cuts: readonly number[],
  first: Digest = begun('PIECES'),
): { readonly pieces: string[]; readonly open: Digest } {
  let [open, from] = [first, 0];
  const pieces = cuts.map((cut) => {
    open.update(plain.subarray(from, cut));
    from = cut;
    const ended = open;
    open = begun('PIECES');
    return ended.digest().toString('hex');
  });
  open.update(plain.subarray(from));
  return { pieces, open };
}
