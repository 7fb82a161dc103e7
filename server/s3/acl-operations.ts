/**
 * Access control lists as AWS has them where they are disabled: the owner may do everything, and nothing
 * else can be granted.
 */
import { ownerOf } from './bucket-operations.ts';
import { findContent } from './object-reading.ts';
import { bucketOf, keyOf, type S3Answer, type S3Call, type S3Operation } from './s3-call.ts';
import { S3Error } from './s3-error.ts';
import { xmlDocument } from './xml.ts';

const READ = { method: 'GET', query: ['acl'], permission: 'storage:read' } as const;
const WRITE = { method: 'PUT', query: ['acl'], permission: 'storage:admin' } as const;
/** Canned lists that grant nothing to others. */
const OWNERS = ['private', 'bucket-owner-full-control', 'bucket-owner-read'];

export const ACL_OPERATIONS: readonly S3Operation[] = [
  { ...READ, name: 'GetBucketAcl', action: 's3:GetBucketAcl', level: 'bucket', run: getBucketAcl },
  { ...READ, name: 'GetObjectAcl', action: 's3:GetObjectAcl', level: 'object', run: getObjectAcl },
  { ...WRITE, name: 'PutBucketAcl', action: 's3:PutBucketAcl', level: 'bucket', run: putBucketAcl },
  { ...WRITE, name: 'PutObjectAcl', action: 's3:PutObjectAcl', level: 'object', run: putObjectAcl },
];

/** Throws S3Error AccessControlListNotSupported where the headers grant something to others. */
export function assertGrantsNothing({ headers }: Pick<S3Call, 'headers'>): void {
  const canned = headers['x-amz-acl'];
  const isOwners = canned === undefined || OWNERS.includes(String(canned));
  if (isOwners && !Object.keys(headers).some((name) => name.startsWith('x-amz-grant-'))) return;
  throw new S3Error('AccessControlListNotSupported');
}

function listOf(call: S3Call): S3Answer {
  const owner = ownerOf(call);
  const grant = [
    ['Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="CanonicalUser"', owner],
    ['Permission', 'FULL_CONTROL'],
  ] as const;
  return {
    xml: xmlDocument('AccessControlPolicy', [
      ['Owner', owner],
      ['AccessControlList', [['Grant', grant]]],
    ]),
  };
}

async function getBucketAcl(call: S3Call): Promise<S3Answer> {
  await bucketOf(call);
  return listOf(call);
}

async function getObjectAcl(call: S3Call): Promise<S3Answer> {
  const versionId = call.target.query.get('versionId');
  await findContent(call, await bucketOf(call), { name: keyOf(call), versionId });
  return listOf(call);
}

async function putBucketAcl(call: S3Call): Promise<S3Answer> {
  await bucketOf(call);
  if (call.principal.bucketLimits !== null)
    throw new S3Error('AccessDenied', 'This key is limited to certain buckets');
  return accept(call);
}

async function putObjectAcl(call: S3Call): Promise<S3Answer> {
  await getObjectAcl(call);
  return accept(call);
}

/** A canned list in the header only: a body may grant anything. */
function accept(call: S3Call): S3Answer {
  assertGrantsNothing(call);
  if (call.headers['x-amz-acl'] === undefined) throw new S3Error('AccessControlListNotSupported');
  return {};
}
