/** What state a database is in, and which may follow which. */
import { AppError } from '../errors.ts';
import type { Access } from './engine.ts';

export const DATABASE_STATES = ['creating', 'ready', 'read_only', 'suspended', 'error', 'deleting'] as const;
export type DatabaseState = (typeof DATABASE_STATES)[number];

/** What the tenant's own sessions may do in each. */
export const ACCESS: Readonly<Record<DatabaseState, Access>> = {
  creating: 'none',
  ready: 'full',
  read_only: 'read_only',
  suspended: 'none',
  error: 'none',
  deleting: 'none',
};

/** Throws `database_not_ready` unless it can be read. */
export function requireReadable(row: { readonly name: string; readonly state: DatabaseState }): void {
  if (row.state === 'ready' || row.state === 'read_only') return;
  throw notReady(row);
}

/** Throws `database_not_ready` unless all may be done with it. */
export function requireReady(row: { readonly name: string; readonly state: DatabaseState }): void {
  if (row.state !== 'ready') throw notReady(row);
}

function notReady({ name, state }: { readonly name: string; readonly state: DatabaseState }): AppError {
  const what = {
    creating: 'is still being made',
    ready: 'is ready',
    read_only: 'is read-only: it has reached its size limit',
    suspended: 'is suspended: the account has no credits left',
    error: 'is in error',
    deleting: 'is being deleted',
  }[state];
  return new AppError('database_not_ready', `The database ${name} ${what}`, { extra: { state } });
}
