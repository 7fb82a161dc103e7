/** The initiator of a multipart upload: only the bucket's owner may touch the uploads of others. */
import type { AccountName } from '../storage/bucket-settings.ts';
import { accessOf, type S3Call } from './s3-call.ts';
import { S3Error } from './s3-error.ts';

interface Begun {
  /** See PartUploadRow. */
  readonly acl: string | null;
}

/** Everyone who sends no signature. */
const ANONYMOUS: AccountName = { id: '', name: '' };

/** The row's text of who began it, beside the list of the object to be. */
export function begunBy({ caller }: S3Call, acl: string | null, owner: AccountName): string | null {
  const initiator = caller.via === 'nobody' ? ANONYMOUS : { id: caller.canonicalId, name: caller.username };
  if (initiator.id === owner.id) return acl;
  const list = acl === null ? { grants: [{ ...owner, permission: 'FULL_CONTROL' }] } : JSON.parse(acl);
  return JSON.stringify({ ...list, initiator });
}

export function initiatorOf(call: Pick<S3Call, 'access'>, { acl }: Begun): AccountName {
  const { initiator } = JSON.parse(acl ?? '{}') as { initiator?: AccountName };
  return initiator ?? accessOf(call).owner;
}

/** Throws S3Error AccessDenied. */
export function assertInitiator(call: S3Call, upload: Begun): void {
  if (accessOf(call).isOwner || initiatorOf(call, upload).id === call.caller.canonicalId) return;
  throw new S3Error('AccessDenied');
}
