/** How failures cross from the worker threads, where Error objects lose their code, to AppErrors. */
import { AppError } from '../../platform/errors.ts';

/**
 * `sync`: an fsync failed; `write`, `read`: another system call did; `thread`: a worker thread died; `s3`: a
 * request to S3 failed.
 */
export type FaultKind = 'sync' | 'write' | 'read' | 'thread' | 's3';

/** Error message of a worker thread. */
export interface FaultRecord {
  readonly kind: FaultKind;
  /** errno name, `EIO`, or the code of S3; empty when there is none. */
  readonly code: string;
  readonly message: string;
}

export class BlobFault extends Error {
  readonly kind: FaultKind;
  readonly code: string;

  constructor({ kind, code, message }: FaultRecord) {
    super(message);
    this.name = 'BlobFault';
    this.kind = kind;
    this.code = code;
  }
}

/** Wraps what a system call threw; a BlobFault stays as it is. */
export function asFault(error: unknown, kind: FaultKind): BlobFault {
  if (error instanceof BlobFault) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return new BlobFault({ kind, code, message: error instanceof Error ? error.message : String(error) });
}

/** For bytes that are not what was written: missing, unreadable or failing their check. */
export function damaged(cause: unknown): AppError {
  return new AppError('data_corrupted', 'The stored bytes are damaged and were not sent.', { cause });
}
