/** The initiator of a multipart upload: only the bucket owner may access uploads of others. */

import { S3Error } from '../../../libs/s3-wire/index.ts';
import { onlyAppends } from '../../calls/principal.ts';
import type { AccountName } from '../../storage/buckets/bucket-settings.ts';
import { mayUseUpload } from '../../storage/uploads/open-uploads.ts';
import { accessOf, type S3Call, type S3Sender } from '../s3-call.ts';

interface Begun {
  /** See PartUploadRow. */
  readonly acl: string | null;
}

/** Everyone without a signature. */
const ANONYMOUS: AccountName = { id: '', name: '' };

/**
 * The row's text of the initiator, stored with the ACL of the future object: another account than
 * the owner's, or a key limited to its own uploads.
 */
export function begunBy({ caller }: S3Sender, acl: string | null, owner: AccountName): string | null {
  const initiator = caller.via === 'nobody' ? ANONYMOUS : { id: caller.canonicalId, name: caller.username };
  const who = {
    ...(initiator.id !== owner.id && { initiator }),
    ...(onlyAppends(caller) && { key: caller.credentialId }),
  };
  if (Object.keys(who).length === 0) return acl;
  const list = acl === null ? { grants: [{ ...owner, permission: 'FULL_CONTROL' }] } : JSON.parse(acl);
  return JSON.stringify({ ...list, ...who });
}

export function initiatorOf(call: S3Call, { acl }: Begun): AccountName {
  const { initiator } = JSON.parse(acl ?? '{}') as { initiator?: AccountName };
  return initiator ?? accessOf(call).owner;
}

/** Throws S3Error AccessDenied. */
export function assertInitiator(call: S3Call, upload: Begun): void {
  if (!mayUseUpload(call.who.caller, upload)) {
    throw new S3Error('AccessDenied', 'This key may only append, and another key began the upload');
  }
  if (accessOf(call).isOwner || initiatorOf(call, upload).id === call.who.caller.canonicalId) return;
  throw new S3Error('AccessDenied');
}
