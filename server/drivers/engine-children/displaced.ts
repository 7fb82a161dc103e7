/** The error of a statement that was ended for another account's slot. */
import { AppError } from '../../platform/errors.ts';

export const DISPLACED_HINT =
  'Run shorter statements, or fewer databases at the same time, then try again: add an index, or split the work';
const RETRY_SECONDS = 5;

/** `cause` has the details: the statement, its duration, and the reason. */
export function displaced(cause: Error): AppError {
  return new AppError('engine_unavailable', cause.message, {
    hint: DISPLACED_HINT,
    retryAfterSeconds: RETRY_SECONDS,
    cause,
  });
}
