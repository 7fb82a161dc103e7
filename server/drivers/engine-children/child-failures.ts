/** Errors of the API for what happens to the process and the data of a database. */
import { QueryFailed } from '../../databases/engine.ts';
import { AppError, hostDiskFull } from '../../platform/errors.ts';
import { ChildGone, ChildRefused } from './tenant-child.ts';

const RETRY_SECONDS = 5;
const RECOVERY_HINT =
  'Load its last dump with POST /api/databases/{database_id}/load, or ask the operator: an earlier recovery point ' +
  'may contain a dump';
export const DISPLACED_HINT =
  'Run shorter statements, or fewer databases at the same time, then try again: add an index, or split the work';

/** `errorName`: the engine's name for an unnamed error. Other errors are kept. */
export function failureOf(error: unknown, errorName: string): unknown {
  if (error instanceof ChildGone) return goneError(error);
  if (!(error instanceof ChildRefused)) return error;
  if (error.isDiskFull) return hostDiskFull(error);
  if (error.isDamaged) return dataDamaged(error.message, error);
  return new QueryFailed(error.message, error.engineCode ?? errorName);
}

function goneError(error: ChildGone): AppError {
  if (error.why === 'silent') return queryTimeout(null, error);
  if (error.why === 'displaced') return displaced(error);
  return new AppError('engine_unavailable', 'The sessions of the database were terminated', {
    hint: 'Try again',
    cause: error,
  });
}

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

/** A statement was ended for another account's slot; `cause` names it, its duration, and the reason. */
export function displaced(cause: Error, hint = DISPLACED_HINT): AppError {
  return new AppError('engine_unavailable', cause.message, {
    hint,
    retryAfterSeconds: RETRY_SECONDS,
    cause,
  });
}

/** A load was ended for another account's slot; `cause` says when and why. The database is unchanged. */
export function loadDisplaced(cause: Error): AppError {
  return displaced(cause, 'Load the file again later, or fewer files at the same time');
}

/** The statement exceeded its time; `ms`: the limit, null: none was set. */
export function queryTimeout(ms: number | null, cause: unknown): AppError {
  const limit = ms === null ? 'longer than allowed' : `longer than ${ms / 1000} seconds`;
  return new AppError('query_timeout', `The statement took ${limit} and was cancelled`, {
    hint: 'Query less data at once, or add an index',
    cause,
  });
}

/** The statement waited `waitedMs`, and never ran. */
export function neverBegan(waitedMs: number, cause: unknown): AppError {
  const detail = `The statement was not run: it waited ${Math.round(waitedMs / 1000)} s for other statements of its database`;
  return new AppError('engine_unavailable', detail, {
    hint: 'Retry when the other statements have finished, or run fewer statements at the same time',
    retryAfterSeconds: RETRY_SECONDS,
    cause,
  });
}
