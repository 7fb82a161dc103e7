/** Refusals that several operations on recovery points share. */
import { AppError, isAppError } from '../../platform/errors.ts';
import { formatSize } from '../../storage/listing/entries.ts';
import type { PointRow } from '../store.ts';

/** `pointId`: of the point being created; empty before it has one. */
export function inProgress(pointId: string | null, which = 'Another recovery point'): AppError {
  const extra = pointId ? { point_id: pointId } : {};
  const hint = 'Wait until the creation ends, or cancel it';
  return new AppError('point_in_progress', `${which} is being created`, { extra, hint });
}

export function invalidState({ point_id, state }: PointRow, what: string, hint?: string): AppError {
  const detail = `The recovery point ${point_id} ${what}`;
  const extra = { state };
  return new AppError('point_invalid_state', detail, hint === undefined ? { extra } : { extra, hint });
}

/** A point in the data directory must leave room for the data. */
export function tooLarge(storesAtMost: number): AppError {
  const half = `half of the free space, ${formatSize(storesAtMost)}`;
  return new AppError(
    'out_of_space',
    `The point has more new data than ${half}, which is reserved for the data`,
    {
      hint: 'Set CLOUDLET_RECOVERY_TARGET to a directory on another disk, or free space',
    },
  );
}

/** Why a point failed, for people. */
export function reasonOf(error: unknown): string {
  return isAppError(error) ? error.message : 'Writing the point failed; the log has the cause';
}
