/** Converts failures of the disk to AppErrors. */
import { AppError } from '../../platform/errors.ts';
import { asFault, type BlobFault, damaged } from '../blob-frames/blob-fault.ts';

/** A full disk affects only the current file, and passes. */
export function isFullDisk({ code }: BlobFault): boolean {
  return code === 'ENOSPC' || code === 'EDQUOT';
}

/** The public error of a failure. The fault itself, with its path, is only the cause. */
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
