/**
 * Keys that may only append, for backups that must survive whoever gets hold of the key. They create objects,
 * and replace or delete only where the earlier version stays: in a bucket whose versioning is on. Both checks
 * belong into the commit, where the bucket is as it was read: a change that was built while versioning was on
 * drops no version, so that versioning that is suspended meanwhile loses nothing.
 */
import { type Principal, permits } from '../calls/principal.ts';
import { AppError } from '../platform/errors.ts';
import type { BucketRow } from './bucket-sql.ts';
import type { UploadTarget } from './object-sql.ts';
import { VERSIONING } from './schema.ts';

/** True for a key that has `storage:append` and not the whole right to write. */
function onlyAppends(principal: Principal): boolean {
  return principal.scopes.includes('storage:append') && !permits(principal, 'storage:write');
}

/**
 * `dropped`: the version or marker that the new version takes the place of. Throws `scope_required` where an
 * upload would replace something for good.
 */
export function assertMayReplace(
  principal: Principal,
  { versioning, previous }: Pick<UploadTarget, 'versioning' | 'previous'>,
  dropped: unknown,
): void {
  if (previous === undefined && dropped === undefined) return;
  if (versioning === VERSIONING.on || !onlyAppends(principal)) return;
  throw refusal('replace an object');
}

/** Throws `scope_required` where a delete would remove something for good. */
export function assertMayRemove(
  principal: Principal,
  { versioning }: Pick<BucketRow, 'versioning'>,
  versionId: string | undefined,
): void {
  if (!onlyAppends(principal)) return;
  if (versionId !== undefined) throw refusal('remove a version');
  if (versioning !== VERSIONING.on) throw refusal('delete an object');
}

function refusal(deed: string): AppError {
  return new AppError('scope_required', `This key may only append, so it cannot ${deed} for good`, {
    hint: 'Enable the versioning of the bucket, or use a key with the scope storage:write',
  });
}
