/** Why all machines of an account are stopped. A cause is the code of the reason that they show. */
import { AppError } from '../../platform/errors.ts';
import type { Reason } from './lifecycle.ts';

/** An account that is blocked has nobody who could start or stop its machines. */
export type AccountBlock = 'account_suspended' | 'account_closed';
export type StopCause = 'credits_exhausted' | AccountBlock;

/** Tell those that the system stopped from those that their owner did. */
export const STOP_REASONS: Readonly<Record<StopCause, Reason>> = {
  credits_exhausted: {
    code: 'credits_exhausted',
    message: 'The machine was stopped because no credits were left',
  },
  account_suspended: {
    code: 'account_suspended',
    message: 'The machine was stopped because its account was suspended',
  },
  account_closed: {
    code: 'account_closed',
    message: 'The machine was stopped because its account was closed',
  },
};

/** The reason for a single machine that an administrator stopped: its owner may start it again. */
export const STOPPED_BY_ADMINISTRATOR: Reason = {
  code: 'stopped_by_administrator',
  message: 'The machine was stopped by an administrator',
};

/** What is stopped for these is started again when they no longer hold. */
export const PASSING_CAUSES: readonly StopCause[] = ['credits_exhausted', 'account_suspended'];

/** The refusal of a start that its account may not have, whoever wants it. */
export function accountBlocked(): AppError {
  const message = 'The account of this machine is suspended or closed: nothing of it is started';
  return new AppError('account_suspended', message);
}
