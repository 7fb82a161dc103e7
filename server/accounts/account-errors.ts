/** Refusals that several services of accounts share. */
import { AppError } from '../platform/errors.ts';

export function changedByOthers(): AppError {
  return new AppError('write_conflict', 'The account was changed by another request');
}

export function accountNotFound(): AppError {
  return new AppError('account_not_found', 'There is no such account');
}

export function lastAdministrator(): AppError {
  return new AppError('last_administrator', 'This is the last administrator who can act', {
    hint: 'Make another administrator first, for example with "cloudlet admin create --username NAME"',
  });
}
