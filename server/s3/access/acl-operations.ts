/** Access control lists of buckets and objects. */

import { S3Error } from '../../../libs/s3-wire/index.ts';
import { settingsOf } from '../../storage/buckets/bucket-settings.ts';
import { accessOf, contentOf, type S3Answer, type S3Call, type S3Operation } from '../s3-call.ts';
import {
  ACL_MAX_BYTES,
  type AclPlace,
  aclDocument,
  aclText,
  assertNoLists,
  assertPublicAllowed,
  bodyGrants,
  headerGrants,
  isOnly,
} from './new-acl.ts';

const READ = { method: 'GET', query: ['acl'], permission: 'storage:read' } as const;
const WRITE = { method: 'PUT', query: ['acl'], permission: 'storage:admin' } as const;
const ON_VERSION = { level: 'object', reads: true } as const;

export const ACL_OPERATIONS: readonly S3Operation[] = [
  { ...READ, name: 'GetBucketAcl', action: 's3:GetBucketAcl', level: 'bucket', run: getBucketAcl },
  {
    ...READ,
    ...ON_VERSION,
    name: 'GetObjectAcl',
    action: 's3:GetObjectAcl',
    versionAction: 's3:GetObjectVersionAcl',
    run: getObjectAcl,
  },
  { ...WRITE, name: 'PutBucketAcl', action: 's3:PutBucketAcl', level: 'bucket', run: putBucketAcl },
  {
    ...WRITE,
    ...ON_VERSION,
    name: 'PutObjectAcl',
    action: 's3:PutObjectAcl',
    versionAction: 's3:PutObjectVersionAcl',
    run: putObjectAcl,
  },
];

/** The access control list of a bucket. */
export function bucketAcl(call: S3Call) {
  const { bucket, owner, hasLists } = accessOf(call);
  const own = [{ ...owner, permission: 'FULL_CONTROL' }] as const;
  return { owner, grants: (hasLists ? settingsOf(bucket).acl : undefined) ?? own };
}

function getBucketAcl(call: S3Call): S3Answer {
  return { xml: aclDocument(bucketAcl(call)) };
}

function getObjectAcl(call: S3Call): S3Answer {
  const { row } = contentOf(call);
  return { xml: aclDocument(accessOf(call).aclOf(row.acl)) };
}

async function putBucketAcl(call: S3Call): Promise<S3Answer> {
  const access = accessOf(call);
  const { bucket, owner } = access;
  if (call.who.caller.bucketLimits !== null)
    throw new S3Error('AccessDenied', 'This key is limited to certain buckets');
  const grants = await askedOf(call, { level: 'bucket', owner, bucketOwner: owner });
  const acl = isOnly(grants, owner) ? undefined : grants;
  await call.tools.storage.buckets.configure(
    call,
    bucket.name,
    ['acl', acl],
    ({ ownership, publicAccess }) => {
      if (ownership === 'BucketOwnerEnforced') throw new S3Error('AccessControlListNotSupported');
      assertPublicAllowed(publicAccess, grants);
    },
  );
  return {};
}

async function putObjectAcl(call: S3Call): Promise<S3Answer> {
  const access = accessOf(call);
  const { row } = contentOf(call);
  const { owner } = access.aclOf(row.acl);
  const grants = await askedOf(call, { level: 'object', owner, bucketOwner: access.owner });
  if (access.hasLists) {
    assertPublicAllowed(settingsOf(access.bucket).publicAccess, grants);
    const fact = { acl: aclText(owner, grants, access.owner) };
    await call.tools.storage.objects.setFact(call, row, { bucket: access.bucket, fact });
  }
  return {};
}

/** The ACL in the headers or in the body. */
async function askedOf(call: S3Call, place: AclPlace) {
  const body = await call.what.body.whole(ACL_MAX_BYTES);
  const inHeaders = await headerGrants(call.what.headers, place, call.tools.accounts);
  if (inHeaders !== undefined && body.length > 0) throw new S3Error('UnexpectedContent');
  if (inHeaders === undefined && body.length === 0) throw new S3Error('MissingSecurityHeader');
  const grants = inHeaders ?? (await bodyGrants(body, place.owner, call.tools.accounts));
  if (!accessOf(call).hasLists) assertNoLists(call.what.headers['x-amz-acl'], grants, place.bucketOwner);
  return grants;
}
