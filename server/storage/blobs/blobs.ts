/**
 * The blob store for object storage. A blob is written once, under an unguessable name, and never
 * changed; the row that references it is the commit point, so a blob without a row is an orphan for
 * the sweeper and a crash needs no repair.
 */
import type { DigestName, Digests } from '../../../libs/s3-wire/index.ts';

export interface BlobRef {
  /** The name from BlobWriter.name: `blob-` + 26 characters. */
  readonly name: string;
  /** Length of the plaintext, bytes. */
  readonly sizeBytes: number;
  /** 32-byte data key when the blob is encrypted, else null. */
  readonly dataKey: Uint8Array | null;
}

export interface NewBlobOptions {
  /** 32 bytes, which encrypt the blob, or null. */
  readonly dataKey: Uint8Array | null;
  /** The account that uploads: when memory is short, each account gets a share. */
  readonly owner?: number;
  /** Computed while the bytes are stored; default: none. */
  readonly digests?: readonly DigestName[];
  /** Called with the SHA-256 (hex) of each piece that write() completes, in order. Must not throw. */
  readonly onPieces?: ((hashes: readonly string[]) => void) | undefined;
}

/** The end of a finished write. */
export interface WrittenBlob {
  readonly name: string;
  readonly sizeBytes: number;
  /** The requested digests of the plaintext. */
  readonly digests: Digests;
}

export interface BlobWriter {
  readonly name: string;
  /**
   * Copies the bytes before the call returns. Returns undefined while the buffer has space, else a
   * promise that resolves when the caller may write again. `endsPiece`: a piece ends with them.
   * Throws or rejects with AppError `out_of_space`, `read_only`; the writer must then be aborted.
   */
  write(chunk: Uint8Array, endsPiece?: boolean): Promise<void> | undefined;
  /** Resolves when the bytes and the directory entry are on disk (fsync). Not callable after abort. */
  finish(): Promise<WrittenBlob>;
  /**
   * Ends the write and removes the written bytes. Idempotent; allowed after a failed or a successful finish
   * as long as no commit references the blob.
   */
  abort(): Promise<void>;
  /**
   * Call when the commit that references the finished blob has ended, also with an unknown outcome; until
   * then the blob counts as being written. Idempotent.
   */
  release(): void;
}

/**
 * Receives verified plaintext. The memory is valid only until the returned promise settles or, if
 * none is returned, until the call returns.
 */
export type BlobSink = (chunk: Uint8Array) => Promise<void> | undefined;

export interface BlobRange {
  /** First byte. */
  readonly start: number;
  /** One past the last byte. */
  readonly end: number;
}

export interface BlobReader {
  readonly sink: BlobSink;
  /** Stops reading early. */
  readonly signal?: AbortSignal;
}

export interface StoredBlob {
  readonly name: string;
  /** Bytes used on disk. */
  readonly storedBytes: number;
  /** Last change, ms since 1970. */
  readonly modifiedAt: number;
}

/** The stored bytes of a blob, sealed, unchanged. */
export interface RawBlob {
  /** The path of the blob's file in a data directory that stores blobs as files. */
  readonly path: string;
  /** Path of the file on this host, if the blob is a file; it may be removed later. */
  readonly absolutePath?: string;
  /** undefined: the blob is gone. */
  open(): Promise<AsyncIterable<Uint8Array> | undefined>;
}

/** Bytes from raw(), to be stored elsewhere. */
export interface RawCopy {
  readonly name: string;
  /** Exact length. */
  readonly storedBytes: number;
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface BlobStore {
  /** Minimum age, ms, of a stored blob without a row that cannot belong to an upload in progress. */
  readonly minOrphanAgeMs: number;
  /** False while the store is unreachable. */
  readonly works: boolean;
  /**
   * Creates a blob. `dataKey` (32 bytes) encrypts it. Throws `read_only` after an fsync error and
   * `out_of_space` when the disk is nearly full.
   */
  create(options: NewBlobOptions): Promise<BlobWriter>;
  /**
   * Passes the bytes of `range` to `sink` in order. Every chunk is verified first: a flipped bit,
   * or a truncated or swapped file, rejects with AppError `data_corrupted` and the sink sees no
   * byte of the bad chunk. Stops early when `signal` aborts (rejects with its reason).
   */
  read(ref: BlobRef, range: BlobRange, reader: BlobReader): Promise<void>;
  /** Removes a blob; a missing one is no error. */
  remove(name: string): Promise<void>;
  /** Every stored blob, finished or not, in no order, at constant memory. */
  list(): AsyncIterable<StoredBlob>;
  /** True while the stored blobs are known to belong to this cloud. */
  isOurs(): Promise<boolean>;
  /**
   * Removes leftovers of failed writes that list() does not show, if they were begun before
   * `before`, ms since 1970. Resolves to the number of writes.
   */
  removeUnfinished(before: number): Promise<number>;
  /** The stored bytes of a blob; they are not verified. */
  raw(name: string): RawBlob;
  /** Number of bytes that raw() returns; undefined: no such blob. */
  storedBytes(name: string): Promise<number | undefined>;
  /**
   * Stores bytes from raw() under their name; durable when it resolves. A blob of that name and length is
   * left as it is. Throws `data_corrupted` if the bytes have another length.
   */
  storeRaw(copy: RawCopy): Promise<void>;
  /** True from when the blob is created until it is released or aborted. */
  isBeingWritten(name: string): boolean;
  /** Stops the worker threads. Open writers are aborted. */
  close(): Promise<void>;
}
