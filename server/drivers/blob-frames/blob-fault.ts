/** Carries failures from worker threads, where Error objects lose their code, to AppErrors. */
import { AppError } from '../../platform/errors.ts';

/**
 * `sync`: an fsync failed; `write`, `read`: another system call did; `thread`: a worker thread died; `s3`: a
 * request to S3 failed.
 */
export type FaultKind = 'sync' | 'write' | 'read' | 'thread' | 's3';

/** Error message of a worker thread. */
export interface FaultRecord {
  readonly kind: FaultKind;
  /** errno name, such as `EIO`, or a code of S3; may be empty. */
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

/** Wraps an error of a system call; a BlobFault stays unchanged. */
export function asFault(error: unknown, kind: FaultKind): BlobFault {
  if (error instanceof BlobFault) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return new BlobFault({ kind, code, message: error instanceof Error ? error.message : String(error) });
}

/** For bytes that are missing, unreadable or fail their checksum. */
export function damaged(cause: unknown): AppError {
  return new AppError('data_corrupted', 'The stored bytes are damaged and were not sent.', { cause });
}
