/** Results and errors of commits, as errors of the API. */
import type { WaitingCommit } from '../../metadata/commit-queue.ts';
import { CommitOutcomeUnknown, CommitRejected } from '../../metadata/metadata.ts';
import { AppError } from '../../platform/errors.ts';
import { BatchRefused, type CommitOutcome, TakenOver } from './batch-store.ts';
import { isReadOnly } from './connections.ts';

/** Settles each commit of a stored batch. */
export function answer(batch: readonly WaitingCommit[], outcomes: readonly CommitOutcome[]): void {
  for (const [i, { resolve, reject }] of batch.entries()) {
    const outcome = outcomes[i] as CommitOutcome;
    if (!('reason' in outcome)) resolve([...outcome]);
    else if (outcome.reason === 'fault') {
      const cause = new Error(`statement ${outcome.index}: ${outcome.detail}`);
      reject(new AppError('internal_error', 'A metadata statement failed', { cause }));
    } else reject(new CommitRejected(outcome.index, outcome.reason, outcome.detail));
  }
}

/** Nothing was stored. */
export function failureOf(error: unknown): Error {
  if (error instanceof TakenOver) return takenOver();
  if (isReadOnly(error)) {
    const hint = 'Retry; the operator finds the reason in GET /api/system/status';
    const extras = { hint, retryAfterSeconds: 5, cause: error };
    return new AppError('read_only', 'The metadata store takes no writes now; nothing was stored', extras);
  }
  if (!(error instanceof BatchRefused)) return error instanceof AppError ? error : unreachable(error);
  if (error.code === '53100') {
    const hint = 'Free space on the disk of PostgreSQL';
    return new AppError('out_of_space', 'The disk is full; nothing was stored', { hint, cause: error });
  }
  const extras = { retryAfterSeconds: 1, cause: error };
  return new AppError('overloaded', 'The metadata store is busy; nothing was stored', extras);
}

export function outcomeUnknown(error: unknown): CommitOutcomeUnknown {
  return new CommitOutcomeUnknown(
    String(error),
    'The connection to the metadata store was lost, so it is unknown whether the change was stored',
    'Read the resource before you send the request again',
  );
}

export function takenOver(): AppError {
  return new AppError('read_only', 'Another Cloudlet has taken over the metadata; nothing was stored', {
    hint: 'The operator finds the other Cloudlet in GET /api/system/status',
  });
}

export function unreachable(cause: unknown): AppError {
  return new AppError('overloaded', 'The metadata store cannot be reached; nothing was stored', {
    retryAfterSeconds: 1,
    hint: 'Retry; the operator finds the reason in GET /api/system/status',
    cause,
  });
}

export function closed(): AppError {
  return new AppError('shutting_down', 'The metadata store is closed');
}
