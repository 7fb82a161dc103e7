/** Messages between the event loop and worker threads. Bytes travel in shared slots, never in messages. */
import type { DigestName } from '../../../libs/s3-wire/index.ts';
import type { DigestReply, DigestRequest, DropDigests } from '../blob-frames/digest-streams.ts';

/** Appends the first `bytes` of `slot` to a file; whole chunks, except in the last slot. */
export interface StoreRequest {
  readonly op: 'store';
  /** Identifies the open file in later requests. */
  readonly stream: number;
  /** Set in the first request of a stream: creates the file. */
  readonly create: { readonly name: string; readonly dataKey: Uint8Array | null } | null;
  readonly slot: SharedArrayBuffer;
  readonly bytes: number;
  /** Syncs and closes the file: the answer means durable. */
  readonly last: boolean;
  /** Returned if the blob consists of this slot only. */
  readonly digests: readonly DigestName[];
  /** Ends of pieces; their SHA-256 is returned if the blob consists of this slot only. */
  readonly cuts: readonly number[];
}

/** Drops a stream and removes its file. */
export interface DiscardRequest {
  readonly op: 'discard';
  readonly stream: number;
  readonly remove: string;
}

/** Reads and verifies whole chunks into `slot`. */
export interface ReadRequest {
  readonly op: 'read';
  readonly name: string;
  readonly sizeBytes: number;
  readonly dataKey: Uint8Array | null;
  /** The open file; null: open it. Descriptors belong to the process, so any thread may read. */
  readonly fd: number | null;
  /**
   * True: close it at once; otherwise the answer contains the descriptor, and the same thread must
   * close it.
   */
  readonly close: boolean;
  readonly slot: SharedArrayBuffer;
  readonly firstChunk: number;
  readonly chunks: number;
}

export interface CloseRequest {
  readonly op: 'close';
  readonly fd: number;
}

export type BlobRequest =
  | StoreRequest
  | DigestRequest
  | DropDigests
  | DiscardRequest
  | ReadRequest
  | CloseRequest;

export interface BlobReply extends DigestReply {
  /** The file that a `read` opened and left open. */
  readonly fd?: number;
  /**
   * Number of intact chunks of a `read`, from the first. If fewer than requested, the next one is damaged.
   */
  readonly goodChunks?: number;
}

/** `workerData` of a thread. */
export interface BlobThreadSetup {
  readonly directory: string;
  /** Maximum concurrent direct writes of this thread in libuv's pool. */
  readonly directWrites: number;
}
