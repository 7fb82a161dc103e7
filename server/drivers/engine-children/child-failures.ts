/** Failures of a database's process as errors of the domain. */
import { QueryFailed } from '../../databases/engine.ts';
import { AppError, hostDiskFull } from '../../platform/errors.ts';
import { dataDamaged } from './data-errors.ts';
import { displaced } from './displaced.ts';
import { ChildGone, ChildRefused } from './tenant-child.ts';
import { queryTimeout } from './time-errors.ts';

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
