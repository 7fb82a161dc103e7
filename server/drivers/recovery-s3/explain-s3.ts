/** Converts failures of a recovery target in S3 for its callers. */
import { AppError } from '../../platform/errors.ts';
import { fixOf } from '../s3-client/s3-fault.ts';

/** `error`: an S3 fault, or one passed on by a thread with its code. An AppError is returned unchanged. */
export function explainS3(error: unknown, location: string): AppError {
  if (error instanceof AppError) return error;
  const { message, code = '' } = error as Error & { readonly code?: string };
  const hint = fixOf({ code }, 'CLOUDLET_RECOVERY_TARGET');
  if (code === 'full') {
    return new AppError('out_of_space', `The recovery target is full: ${location}`, { hint, cause: error });
  }
  return new AppError('target_unavailable', `${location} cannot be used: ${message}`, { hint, cause: error });
}
