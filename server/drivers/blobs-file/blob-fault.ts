/** How failures cross from the worker threads, where Error objects lose their code, to AppErrors. */
import { AppError } from '../../platform/errors.ts';

/** `sync`: an fsync failed; `write`, `read`: another system call did; `thread`: a worker thread died. */
export type FaultKind = 'sync' | 'write' | 'read' | 'thread';

/** Error message of a worker thread. */
export interface FaultRecord {
  readonly kind: FaultKind;
  /** errno name, `EIO`; empty when there is none. */
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

/** A full disk loses only the file it hit, and ends by itself. */
export function isFullDisk({ code }: BlobFault): boolean {
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** The public face of a failure. The fault itself, with its path, is only the cause. */
export function faultError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const extras = { cause: error };
  const fault = asFault(error, 'write');
  if (isFullDisk(fault)) {
    return new AppError('out_of_space', 'The disk is full; nothing was stored.', extras);
  }
  switch (fault.code) {
    case 'EMFILE':
    case 'ENFILE':
      return new AppError('overloaded', 'Too many files are open.', {
        hint: 'Retry; the operator can raise the limit of open files (LimitNOFILE of the service)',
        retryAfterSeconds: 1,
        cause: error,
      });
    case 'EIO':
    case 'ENOENT':
      if (fault.kind === 'read') return damaged(fault);
      break;
  }
  if (fault.kind === 'sync' || fault.code === 'EIO' || fault.code === 'EROFS') {
    return new AppError('read_only', 'The disk failed to store the bytes; the store is read-only.', extras);
  }
  return new AppError('internal_error', 'The bytes could not be stored or read.', extras);
}

/** For bytes that are not what was written: missing, unreadable or failing their check. */
export function damaged(cause: unknown): AppError {
  return new AppError('data_corrupted', 'The stored bytes are damaged and were not sent.', { cause });
}
