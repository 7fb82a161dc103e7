/** Requests of the event loop to the worker threads. */
import type { S3Address } from '../../config/s3-address.ts';
import type { DigestReply, DigestRequest, DropDigests } from '../blob-frames/digest-streams.ts';
import type { S3Patience } from '../s3-client/s3-requests.ts';

/** Seals the first `bytes` of `slot` onto a stream; whole chunks, except in the last slot. */
export interface SealRequest {
  readonly op: 'seal';
  /** Names the blob between requests. */
  readonly stream: number;
  readonly name: string;
  readonly dataKey: Uint8Array | null;
  readonly slot: SharedArrayBuffer;
  readonly bytes: number;
  readonly last: boolean;
}

/** Stores all sealed bytes as one object. */
export interface PutRequest {
  readonly op: 'put';
  readonly stream: number;
  readonly patience: S3Patience;
}

/** Stores a sealed part and forgets its bytes. */
export interface PartRequest {
  readonly op: 'part';
  readonly stream: number;
  readonly uploadId: string;
  /** From 0. */
  readonly part: number;
  readonly patience: S3Patience;
}

/** Drops a stream. Replied when none of its requests is running. */
export interface DiscardRequest {
  readonly op: 'discard';
  readonly stream: number;
}

/** Reads and verifies whole chunks into `slot`. */
export interface ReadRequest {
  readonly op: 'read';
  /** Identifies the read in later requests: the response of S3 stays open. */
  readonly stream: number;
  readonly name: string;
  readonly sizeBytes: number;
  readonly dataKey: Uint8Array | null;
  readonly slot: SharedArrayBuffer;
  readonly firstChunk: number;
  readonly chunks: number;
  /** One past the last chunk to request from S3, if a request is needed. */
  readonly untilChunk: number;
  readonly patience: S3Patience;
}

/** Closes the open response of S3, if any. */
export interface CloseRequest {
  readonly op: 'close';
  readonly stream: number;
}

export type S3ThreadRequest =
  | SealRequest
  | PutRequest
  | PartRequest
  | DigestRequest
  | DropDigests
  | DiscardRequest
  | ReadRequest
  | CloseRequest;

export interface S3ThreadReply extends DigestReply {
  /** The ETag of a `part`. */
  readonly etag?: string;
  /** Number of intact chunks of a `read`. If fewer than requested, the next one is damaged. */
  readonly goodChunks?: number;
}

/** `workerData` of a thread. */
export interface S3ThreadSetup {
  readonly address: S3Address;
  /** See S3Counters. */
  readonly counters: SharedArrayBuffer;
}
