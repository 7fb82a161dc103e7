/** The access control list of what an upload makes. */
import { permits } from '../calls/principal.ts';
import {
  type AccountName,
  type Grant,
  type PublicAccess,
  settingsOf,
} from '../storage/buckets/bucket-settings.ts';
import { headerGrants } from './access/asked-grants.ts';
import { grantsToOthers, isPublicGrant } from './access/grants.ts';
import { accessOf, keyOf, type S3Call } from './s3-call.ts';
import { S3Error } from './s3-error.ts';

/** Lists that leave all to the owner of the bucket. */
const OWNERS: readonly unknown[] = [undefined, 'private', 'bucket-owner-full-control', 'bucket-owner-read'];

/**
 * For the row of a new object; null: the bucket's owner, alone. Throws S3Error AccessDenied (a list that the
 * caller may not set, or that is public where that is blocked), AccessControlListNotSupported, and what
 * reading the headers throws.
 */
export async function newAcl(call: S3Call): Promise<string | null> {
  const access = accessOf(call);
  const { headers, accounts, caller } = call;
  const canned = headers['x-amz-acl'];
  const bucketOwner = access.owner;
  // An upload by nobody in particular is the owner's, who pays for it.
  const writer: AccountName =
    caller.via === 'nobody' ? bucketOwner : { id: caller.canonicalId, name: caller.username };
  const yields = access.ownership === 'BucketOwnerPreferred' && canned === 'bucket-owner-full-control';
  const owner = access.hasLists && !yields ? writer : bucketOwner;
  const grants = await headerGrants(headers, { level: 'object', owner, bucketOwner }, accounts);
  if (!access.hasLists) {
    assertNoLists(canned, grants, bucketOwner);
    return null;
  }
  if (grants !== undefined && grantsToOthers(grants, bucketOwner)) assertMayGrant(call, grants, owner);
  return aclText(owner, grants, bucketOwner);
}

/** Throws S3Error AccessControlListNotSupported unless the list leaves all to the owner of the bucket. */
export function assertNoLists(
  canned: unknown,
  grants: readonly Grant[] | undefined,
  bucketOwner: AccountName,
): void {
  if (OWNERS.includes(canned) && (grants === undefined || !grantsToOthers(grants, bucketOwner))) return;
  throw new S3Error('AccessControlListNotSupported');
}

/** Throws S3Error AccessDenied for a public list where the bucket blocks those. */
export function assertPublicAllowed(publicAccess: PublicAccess | undefined, grants: readonly Grant[]): void {
  if (publicAccess?.blockAcls !== true || !grants.some(isPublicGrant)) return;
  throw new S3Error('AccessDenied', 'Public access control lists are blocked by the bucket');
}

/**
 * The uploader to a stranger's bucket owns the object, and may share it; a key needs the scope for that. So
 * may who uploads without a signature, where the list of the bucket lets everyone write.
 */
function assertMayGrant(call: S3Call, grants: readonly Grant[], owner: AccountName): void {
  const access = accessOf(call);
  assertPublicAllowed(settingsOf(access.bucket).publicAccess, grants);
  const upload = { action: 's3:PutObject', permission: 'storage:append', key: keyOf(call) } as const;
  if (call.caller.via === 'nobody' && access.decide(upload).reason === 'list') return;
  const isWriters = !access.isOwner && call.caller.via !== 'nobody' && owner.id === call.caller.canonicalId;
  if (isWriters && permits(call.caller, 'storage:admin')) return;
  access.assert({ action: 's3:PutObjectAcl', permission: 'storage:admin', key: keyOf(call) });
}

/** For a row; null: its owner is the bucket's, and nobody else is granted anything. */
export function aclText(
  owner: AccountName,
  grants: readonly Grant[] | undefined,
  bucketOwner: AccountName,
): string | null {
  const own = { ...owner, permission: 'FULL_CONTROL' } as const;
  const isPlain = grants === undefined || isOnly(grants, own);
  if (isPlain && owner.id === bucketOwner.id) return null;
  return JSON.stringify({ ...(owner.id !== bucketOwner.id && { owner }), grants: grants ?? [own] });
}

/** Whether a list only says that its owner may do everything. */
export function isOnly(grants: readonly Grant[], { id }: AccountName): boolean {
  const [first, ...rest] = grants;
  return (
    rest.length === 0 &&
    first !== undefined &&
    'id' in first &&
    first.id === id &&
    first.permission === 'FULL_CONTROL'
  );
}
