/** Errors that several services of accounts share. */
import type { Principal } from '../calls/principal.ts';
import { AppError, invalidField } from '../platform/errors.ts';
import type { AccountRow } from './store.ts';

export function changedByOthers(): AppError {
  return new AppError('write_conflict', 'The account was changed by another request');
}

export function accountNotFound(): AppError {
  return new AppError('account_not_found', 'There is no such account');
}

/** A password that has to be changed. Setting it again would change nothing. */
export function samePassword(): AppError {
  return invalidField('password', 'must differ from the current password');
}

/** For callers who know the password or have a link. */
export function accountSuspended(reason: string | null): AppError {
  return new AppError('account_suspended', `This account is suspended${reason ? `: ${reason}` : ''}`, {
    hint: 'Ask an administrator of this cloud',
  });
}

export function registrationClosed(policy: 'invitation' | 'domain' | 'closed'): AppError {
  if (policy === 'domain')
    return new AppError(
      'registration_closed',
      'Registration requires an e-mail address at an allowed domain',
      { hint: 'Request a link by mail: POST /api/register/request, or "Sign up" in the console' },
    );
  const [detail, wanted] =
    policy === 'closed'
      ? ['Registration is closed on this cloud', 'an account']
      : ['Registration on this cloud is by invitation only', 'an invitation'];
  return new AppError('registration_closed', detail, { hint: `Ask its administrator for ${wanted}` });
}

export function lastAdministrator(): AppError {
  return new AppError('last_administrator', 'This is the last active administrator', {
    hint: 'Make another administrator first, for example with "cloudlet admin create --username NAME"',
  });
}

/**
 * Throws `operator_required` for the account of an administrator, or of a former one, unless the operator on
 * the host calls: if one administrator could take over another's account, one stolen key could take all of
 * them. Former administrators are included because the rights could be taken away first.
 */
export function assertMayOpen({ via }: Principal, { is_admin, was_admin, username }: AccountRow): void {
  if ((is_admin === 0 && was_admin === 0) || via === 'control') return;
  const is = is_admin === 1 ? 'is' : 'was';
  throw new AppError('operator_required', `${username} ${is} an administrator`, {
    hint: `Run "cloudlet admin reset-link ${username}" on the host of the cloud`,
  });
}
