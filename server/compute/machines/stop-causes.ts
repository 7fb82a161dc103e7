/** Why all machines of an account are stopped. A cause is the reason code that the machines show. */
import { AppError } from '../../platform/errors.ts';
import type { Reason } from './lifecycle.ts';

/** A blocked account has no user who could start or stop its machines. */
export type AccountBlock = 'account_suspended' | 'account_closed';
export type StopCause = 'credits_exhausted' | AccountBlock;

/** Reasons of stops by the system, as opposed to the owner's. */
export const STOP_REASONS: Readonly<Record<StopCause, Reason>> = {
  credits_exhausted: {
    code: 'credits_exhausted',
    message: 'The virtual machine was stopped because the account ran out of credits',
  },
  account_suspended: {
    code: 'account_suspended',
    message: 'The virtual machine was stopped because its account was suspended',
  },
  account_closed: {
    code: 'account_closed',
    message: 'The virtual machine was stopped because its account was closed',
  },
};

/** Reason of a stop by an administrator; the owner may start the machine again. */
export const STOPPED_BY_ADMINISTRATOR: Reason = {
  code: 'stopped_by_administrator',
  message: 'The virtual machine was stopped by an administrator',
};

/** Machines stopped for these causes are started again once the cause no longer holds. */
export const PASSING_CAUSES: readonly StopCause[] = ['credits_exhausted', 'account_suspended'];

/** Refuses a start in a blocked account, whoever requests it. */
export function accountBlocked(): AppError {
  const message = 'The account of this virtual machine is suspended or closed';
  return new AppError('account_suspended', message);
}
