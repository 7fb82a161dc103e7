/**
 * Slow readers of responses. Each may pause for long, but when connections or memory run short,
 * slow readers are disconnected first: the longest waiting reader of the account with the most slow
 * readers.
 */
import type { Socket } from 'node:net';

/** Maximum bytes of a download in memory: the largest slot of drivers/blob-frames. More is a whole body. */
const PIECE_BYTES = 512 * 1024;
/** Memory for chunks of slow readers; drivers/blob-frames/slot-pool.ts reserves the same. */
const PIECES_BYTES = 48 * 2 ** 20;

export interface SlowReader {
  readonly socket: Socket;
  /** The account, or the address of an unauthenticated client. */
  readonly owner: number | string;
  /** Time since which it has accepted hardly any bytes, on the monotonic clock. */
  readonly since: number;
  /** Bytes in memory that wait for the reader. */
  readonly waitingBytes: number;
}

/** Slow readers of one account, the longest waiting one last. */
interface Group {
  readonly readers: SlowReader[];
  waitingBytes: number;
}

/** The slow readers at one moment. */
export class SlowReaders {
  readonly #groups = new Map<number | string, Group>();
  #pieceBytes = 0;
  #wholeBytes = 0;

  constructor(readers: readonly SlowReader[]) {
    for (const reader of readers) {
      const group = this.#groups.get(reader.owner) ?? { readers: [], waitingBytes: 0 };
      this.#groups.set(reader.owner, group);
      group.readers.push(reader);
      this.#count(group, reader, 1);
    }
    for (const { readers: own } of this.#groups.values()) own.reverse().sort((a, b) => b.since - a.since);
  }

  /** Disconnects one reader to free its connection. `of`: only from these connections. */
  take(of?: ReadonlySet<Socket>): Socket | undefined {
    return this.#takeOfLargest(({ readers }) => readers.length, of);
  }

  /** Disconnects readers until the rest fit into the memory for slow readers. */
  *takeBeyond(maxBytes: number): Generator<Socket> {
    while (this.#pieceBytes > PIECES_BYTES || this.#wholeBytes > maxBytes) {
      const socket = this.#takeOfLargest(({ waitingBytes }) => waitingBytes);
      if (socket === undefined) return;
      yield socket;
    }
  }

  #takeOfLargest(sizeOf: (group: Group) => number, of?: ReadonlySet<Socket>): Socket | undefined {
    let largest: Group | undefined;
    for (const group of this.#groups.values()) {
      if (of !== undefined && !group.readers.some(({ socket }) => of.has(socket))) continue;
      if (largest === undefined || sizeOf(group) > sizeOf(largest)) largest = group;
    }
    if (largest === undefined) return undefined;
    const at = of === undefined ? -1 : largest.readers.findLastIndex(({ socket }) => of.has(socket));
    const [reader] = largest.readers.splice(at, 1);
    if (reader === undefined) return undefined;
    this.#count(largest, reader, -1);
    if (largest.readers.length === 0) this.#groups.delete(reader.owner);
    return reader.socket;
  }

  #count(group: Group, { waitingBytes }: SlowReader, sign: 1 | -1): void {
    group.waitingBytes += sign * waitingBytes;
    if (waitingBytes <= 2 * PIECE_BYTES) this.#pieceBytes += sign * waitingBytes;
    else this.#wholeBytes += sign * waitingBytes;
  }
}
