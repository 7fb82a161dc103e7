/** Errors of a database with missing or damaged data. */
import { AppError } from '../../platform/errors.ts';

const RECOVERY_HINT =
  'Load its last dump with POST /api/databases/{database_id}/load, or ask the operator: an earlier recovery point ' +
  'may contain one';

/** `what` must not contain a path. */
export function dataMissing(what: string): AppError {
  return new AppError('data_missing', `The data of this database is missing: ${what}`, {
    hint: RECOVERY_HINT,
  });
}

/** `what` must not contain a path. */
export function dataDamaged(what: string, cause?: unknown): AppError {
  const detail = `The stored data of this database is damaged: ${what}`;
  return new AppError('data_damaged', detail, { hint: RECOVERY_HINT, cause });
}
