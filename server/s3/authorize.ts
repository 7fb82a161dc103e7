/**
 * Whether the caller of a request may have its operation run. The operation itself then runs as the bucket's
 * owner, so nothing may run before this, but where `decides` says that the operation asks for each name.
 */
import { NOBODY, permits } from '../calls/principal.ts';
import { shownId } from '../storage/listing/name-listing.ts';
import type { Content } from '../storage/objects/downloads.ts';
import { Access, type Asked, isNamedOwner } from './access/access.ts';
import { accessOf, assertVersionId, keyOf, type S3Call, type S3Operation } from './s3-call.ts';
import { S3Error } from './s3-error.ts';
import { requestedTags } from './tags.ts';

type Wanted = Pick<S3Operation, 'action' | 'permission' | 'versionAction'>;

/** Throws S3Error AccessDenied, and what finding the object throws. */
export async function authorize(call: S3Call, operation: S3Operation): Promise<void> {
  const { permission, decides, reads, level } = operation;
  const { access, caller, target } = call;
  if (caller.via !== NOBODY.via && !permits(caller, permission)) {
    throw new S3Error('AccessDenied', `This key lacks the scope ${permission}`);
  }
  if (access === null) {
    if (caller.via === NOBODY.via) throw new S3Error('AccessDenied', 'This needs a signed request');
    return;
  }
  if (!access.mayEnter) throw new S3Error('AccessDenied');
  if (decides === true) return;
  if (reads === true) return authorizeContent(call, operation);
  const requested = level === 'object' ? requestedTags(call.headers) : undefined;
  access.assert({ ...wantedOf(call, operation), key: target.key ?? undefined, requestedTags: requested });
}

/** Decides about the object that the request names; call.content is it then. */
export async function authorizeContent(
  call: S3Call,
  operation: Wanted,
  requested?: Readonly<Record<string, string>>,
): Promise<void> {
  const versionId = call.target.query.get('versionId');
  const wanted = { ...wantedOf(call, operation), key: keyOf(call), versionId, requestedTags: requested };
  call.content = await permittedContent(call, accessOf(call), wanted);
}

/** The action that must be allowed: for a version it may be another one. */
function wantedOf({ target }: S3Call, { action, versionAction, permission }: Wanted) {
  return { action: target.query.has('versionId') ? (versionAction ?? action) : action, permission };
}

/**
 * The bucket of that name, for the caller: its own, or else whoever's is reached by it. `:name` passes over
 * the caller's own, and `account:name` is a bucket of that account alone.
 */
export async function openBucket(
  call: Pick<S3Call, 'caller' | 'facts' | 'storage'>,
  name: string,
  expectedOwner: unknown,
): Promise<Access> {
  const { storage, caller, facts } = call;
  const [, account, own = name] = /^([^:]*):(.*)$/s.exec(name) ?? [];
  const bucket = account
    ? await storage.buckets.ofAccount(account, own)
    : await storage.buckets.named(account === undefined ? caller.accountId : 0, own);
  // Names that are not global are nobody else's business.
  if (bucket === undefined && account) throw new S3Error('AccessDenied');
  if (bucket === undefined) throw new S3Error('NoSuchBucket', undefined, { fields: { BucketName: name } });
  const access = new Access(bucket, facts);
  const isExpected =
    expectedOwner === undefined || isNamedOwner(String(expectedOwner), access.owner, bucket.account_id);
  if (!isExpected) throw new S3Error('AccessDenied');
  return access;
}

export type AskedContent = Asked & { readonly key: string; readonly versionId?: string | undefined };

/**
 * Finds what is stored under a name. Throws S3Error AccessDenied, also for what is missing unless the caller
 * may list it, InvalidArgument, NoSuchKey, NoSuchVersion, MethodNotAllowed (a delete marker by its id).
 */
export async function permittedContent(
  { storage }: Pick<S3Call, 'storage'>,
  access: Access,
  { versionId, ...asked }: AskedContent,
): Promise<Content> {
  if (versionId !== undefined) assertVersionId(versionId);
  const { key: name } = asked;
  const found = await storage.downloads.findNamed(access.actor, access.bucket, { name, versionId });
  if (found !== undefined && 'content' in found) {
    access.assert({ ...asked, subject: found.content.row });
    return found.content;
  }
  if (!access.mayMiss(asked)) throw new S3Error('AccessDenied');
  const fields = { Key: name };
  if (found === undefined) {
    if (versionId === undefined) throw new S3Error('NoSuchKey', undefined, { fields });
    throw new S3Error('NoSuchVersion', undefined, { fields: { ...fields, VersionId: versionId } });
  }
  const headers = { 'x-amz-delete-marker': 'true', 'x-amz-version-id': shownId(found.marker) };
  if (versionId === undefined) throw new S3Error('NoSuchKey', undefined, { fields, headers });
  const more = { allow: 'DELETE', 'last-modified': new Date(found.marker.created_at).toUTCString() };
  throw new S3Error('MethodNotAllowed', undefined, { fields, headers: { ...headers, ...more } });
}
