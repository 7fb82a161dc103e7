/** What is told of a database whose stored data is gone or damaged. */
import { AppError } from '../../platform/errors.ts';

const WAY_BACK =
  'Load its last dump with POST /api/databases/{database_id}/load, or ask the operator: a recovery point may ' +
  'hold one from before';

/** `what`: without any path. */
export function dataMissing(what: string): AppError {
  return new AppError('data_missing', `The data of this database is missing: ${what}`, { hint: WAY_BACK });
}

/** `what`: without any path. */
export function dataDamaged(what: string, cause?: unknown): AppError {
  const detail = `The stored data of this database is damaged: ${what}`;
  return new AppError('data_damaged', detail, { hint: WAY_BACK, cause });
}
