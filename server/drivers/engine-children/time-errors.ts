/** Errors of statements that exceeded their time. */
import { AppError } from '../../platform/errors.ts';

const RETRY_SECONDS = 5;

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
  const detail = `The statement was not run: it waited ${waitedMs / 1000} s for other statements of its database`;
  return new AppError('engine_unavailable', detail, {
    hint: 'Retry when the other statements have finished, or run fewer statements at the same time',
    retryAfterSeconds: RETRY_SECONDS,
    cause,
  });
}
