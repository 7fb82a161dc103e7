/** Operations on the service and on buckets, except listing their content. */

import {
  child,
  parseXml,
  S3Error,
  textOf,
  type XmlElement,
  xmlDocument,
} from '../../../libs/s3-wire/index.ts';
import { permits } from '../../calls/principal.ts';
import { isAppError } from '../../platform/errors.ts';
import { type BucketSettings, settingsOf } from '../../storage/buckets/bucket-settings.ts';
import type { BucketRow } from '../../storage/buckets/buckets.ts';
import { VERSIONING } from '../../storage/schema.ts';
import { grantsToOthers } from '../access/grants.ts';
import { headerGrants, isOnly } from '../access/new-acl.ts';
import { ownershipOf } from '../access/public-access.ts';
import { MAX_BUCKET_TAGS, tagPairs, tagsFrom } from '../objects/tags.ts';
import {
  accountNodes,
  bucketOf,
  isoTime,
  numberOf,
  ownerOf,
  type S3Answer,
  type S3Call,
  type S3Operation,
} from '../s3-call.ts';
import { readToken, writeToken } from './list-operations.ts';

const CONFIG_MAX_BYTES = 64 * 1024;
const MAX_BUCKETS = 10_000;
const US_EAST_1 = 'us-east-1';
/** Amazon's rules that exceed ours. */
const RESERVED =
  /\.\.|\.-|-\.|^xn--|^sthree-|^amzn-s3-demo-|-s3alias$|--(?:ol|x|table)-s3$|\.mrap$|^\d+\.\d+\.\d+\.\d+$/;

export const BUCKET_OPERATIONS: readonly S3Operation[] = [
  {
    name: 'ListBuckets',
    action: 's3:ListAllMyBuckets',
    method: 'GET',
    level: 'service',
    permission: 'storage:read',
    run: listBuckets,
  },
  {
    name: 'CreateBucket',
    action: 's3:CreateBucket',
    makes: true,
    method: 'PUT',
    level: 'bucket',
    permission: 'storage:write',
    run: createBucket,
  },
  {
    name: 'HeadBucket',
    action: 's3:ListBucket',
    method: 'HEAD',
    level: 'bucket',
    permission: 'storage:read',
    run: headBucket,
  },
  {
    name: 'DeleteBucket',
    action: 's3:DeleteBucket',
    method: 'DELETE',
    level: 'bucket',
    permission: 'storage:write',
    run: deleteBucket,
  },
  {
    name: 'GetBucketLocation',
    action: 's3:GetBucketLocation',
    method: 'GET',
    level: 'bucket',
    query: ['location'],
    permission: 'storage:read',
    run: getLocation,
  },
  {
    name: 'GetBucketVersioning',
    action: 's3:GetBucketVersioning',
    method: 'GET',
    level: 'bucket',
    query: ['versioning'],
    permission: 'storage:read',
    run: getVersioning,
  },
  {
    name: 'PutBucketVersioning',
    action: 's3:PutBucketVersioning',
    method: 'PUT',
    level: 'bucket',
    query: ['versioning'],
    permission: 'storage:write',
    run: putVersioning,
  },
  {
    name: 'GetBucketEncryption',
    action: 's3:GetEncryptionConfiguration',
    method: 'GET',
    level: 'bucket',
    query: ['encryption'],
    permission: 'storage:read',
    run: getEncryption,
  },
  {
    name: 'PutBucketEncryption',
    action: 's3:PutEncryptionConfiguration',
    method: 'PUT',
    level: 'bucket',
    query: ['encryption'],
    permission: 'storage:write',
    run: putEncryption,
  },
  {
    name: 'DeleteBucketEncryption',
    action: 's3:PutEncryptionConfiguration',
    method: 'DELETE',
    level: 'bucket',
    query: ['encryption'],
    permission: 'storage:write',
    run: deleteEncryption,
  },
];

async function listBuckets(call: S3Call): Promise<S3Answer> {
  const { query } = call.what.target;
  const prefix = query.get('prefix') ?? '';
  const token = query.get('continuation-token') ?? '';
  const after = token === '' ? '' : readToken(token);
  const region = query.get('bucket-region') || undefined;
  const limit = numberOf(call, 'max-buckets', { min: 1, max: MAX_BUCKETS, absent: MAX_BUCKETS });
  const found: BucketRow[] = [];
  for await (const { row } of call.tools.storage.buckets.list(call.principal, 0, Number.POSITIVE_INFINITY)) {
    const isThere = region === undefined || row.region === region;
    if (isThere && row.name.startsWith(prefix) && row.name > after) found.push(row);
  }
  found.sort((a, b) => (a.name < b.name ? -1 : 1));
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1)?.name : undefined;
  const buckets = page.map(
    ({ name, created_at, region }) =>
      [
        'Bucket',
        [
          ['Name', name],
          ['CreationDate', isoTime(created_at)],
          ['BucketRegion', region],
        ],
      ] as const,
  );
  return {
    xml: xmlDocument('ListAllMyBucketsResult', [
      ['Owner', accountNodes(ownerOf(call.who))],
      ['Buckets', buckets],
      ['ContinuationToken', last === undefined ? undefined : writeToken(last)],
      ['Prefix', query.has('prefix') ? prefix : undefined],
    ]),
  };
}

async function createBucket(call: S3Call): Promise<S3Answer> {
  const name = call.what.target.bucket ?? '';
  const body = await call.what.body.whole(CONFIG_MAX_BYTES);
  if (RESERVED.test(name)) throw new S3Error('InvalidBucketName');
  const root = body.length === 0 ? undefined : parseXml(body, CONFIG_MAX_BYTES);
  if (root !== undefined && root.name !== 'CreateBucketConfiguration') throw new S3Error('MalformedXML');
  const settings = { ...(await firstSettings(call)), ...(root && firstTags(root)) };
  const region = (root && textOf(root, 'LocationConstraint')) || US_EAST_1;
  try {
    await call.tools.storage.buckets.create(call, {
      name,
      region,
      isGlobal: true,
      settings,
      ...(settings.lock && { versioning: true }),
    });
  } catch (error) {
    if (isAppError(error, 'invalid_request')) throw new S3Error('InvalidLocationConstraint');
    if (!isAppError(error, 'bucket_exists')) throw error;
    await assertSame(call, { name, region, settings });
  }
  return { headers: { location: `/${name}` } };
}

/** The tags in the document of a new bucket. */
function firstTags(root: XmlElement): BucketSettings {
  const list = child(root, 'Tags');
  return list === undefined ? {} : { tags: tagsFrom(tagPairs(list), MAX_BUCKET_TAGS) };
}

/** The first settings of a bucket: object ownership and ACL, from the headers. */
async function firstSettings(call: S3Call): Promise<BucketSettings> {
  const { caller } = call.who;
  const { headers } = call.what;
  const { accounts } = call.tools;
  const owner = ownerOf(call.who);
  const text = headers['x-amz-object-ownership'];
  const ownership = text === undefined ? undefined : ownershipOf(String(text));
  const grants = await headerGrants(headers, { level: 'bucket', owner, bucketOwner: owner }, accounts);
  const acl = grants === undefined || isOnly(grants, owner) ? undefined : grants;
  if (acl !== undefined && ownership === 'BucketOwnerEnforced' && grantsToOthers(acl, owner)) {
    throw new S3Error('InvalidBucketAclWithObjectOwnership');
  }
  if ((acl !== undefined || ownership !== undefined) && !permits(caller, 'storage:admin')) {
    throw new S3Error('AccessDenied', 'This key lacks the scope storage:admin');
  }
  const isLockable = headers['x-amz-bucket-object-lock-enabled']?.toString().toLowerCase() === 'true';
  return { ...(ownership && { ownership }), ...(acl && { acl }), ...(isLockable && { lock: {} }) };
}

/**
 * Creating an existing bucket again in us-east-1 is no error unless it would differ, as on AWS. Throws
 * S3Error BucketAlreadyOwnedByYou, BucketAlreadyExists.
 */
async function assertSame(
  { principal, tools: { storage } }: S3Call,
  { name, region, settings }: { name: string; region: string; settings: BucketSettings },
): Promise<void> {
  const bucket = await storage.buckets.find(principal, name);
  if (region !== US_EAST_1 || bucket.region !== region) throw new S3Error('BucketAlreadyOwnedByYou');
  const { acl, ownership, lock } = settingsOf(bucket);
  const isOther = settings.ownership !== undefined && settings.ownership !== ownership;
  if (isOther || (settings.lock !== undefined && lock === undefined)) {
    throw new S3Error('BucketAlreadyOwnedByYou');
  }
  if (JSON.stringify(acl) === JSON.stringify(settings.acl)) return;
  throw new S3Error('BucketAlreadyExists', 'You own a bucket of this name with another access control list');
}

async function headBucket(call: S3Call): Promise<S3Answer> {
  const { region } = await bucketOf(call);
  return { headers: { 'x-amz-bucket-region': region, 'content-type': 'application/xml' } };
}

async function deleteBucket(call: S3Call): Promise<S3Answer> {
  const { name } = await bucketOf(call);
  await call.tools.storage.bucketEmptier.removeEmpty(call, name);
  return { status: 204 };
}

async function getLocation(call: S3Call): Promise<S3Answer> {
  const { region } = await bucketOf(call);
  return { xml: xmlDocument('LocationConstraint', region === US_EAST_1 ? '' : region) };
}

const STATUS: Readonly<Record<number, string | undefined>> = {
  [VERSIONING.on]: 'Enabled',
  [VERSIONING.suspended]: 'Suspended',
};

async function getVersioning(call: S3Call): Promise<S3Answer> {
  const { versioning } = await bucketOf(call);
  return { xml: xmlDocument('VersioningConfiguration', [['Status', STATUS[versioning]]]) };
}

async function putVersioning(call: S3Call): Promise<S3Answer> {
  const { name } = await bucketOf(call);
  const root = parseXml(await call.what.body.whole(CONFIG_MAX_BYTES), CONFIG_MAX_BYTES);
  const status = textOf(root, 'Status');
  if (textOf(root, 'MfaDelete') === 'Enabled')
    throw new S3Error('NotImplemented', 'MFA delete is not offered here');
  if (root.name !== 'VersioningConfiguration' || (status !== 'Enabled' && status !== 'Suspended')) {
    throw new S3Error('MalformedXML');
  }
  try {
    await call.tools.storage.buckets.change(call, name, { versioning: status === 'Enabled', suspends: true });
  } catch (error) {
    if (!isAppError(error, 'object_locked')) throw error;
    throw new S3Error(
      'InvalidBucketState',
      'An Object Lock configuration is present on this bucket, so the versioning state cannot be changed.',
    );
  }
  return {};
}

async function getEncryption(call: S3Call): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  if (bucket.encryption === 0) throw new S3Error('ServerSideEncryptionConfigurationNotFoundError');
  const { namedKey } = settingsOf(bucket);
  const byDefault = [
    ['SSEAlgorithm', namedKey === undefined ? 'AES256' : 'aws:kms'],
    ['KMSMasterKeyID', namedKey?.keyId],
  ] as const;
  const rule = [
    ['ApplyServerSideEncryptionByDefault', byDefault],
    ['BucketKeyEnabled', namedKey?.bucketKey ?? false],
  ] as const;
  return { xml: xmlDocument('ServerSideEncryptionConfiguration', [['Rule', rule]]) };
}

async function putEncryption(call: S3Call): Promise<S3Answer> {
  const { name } = await bucketOf(call);
  const root = parseXml(await call.what.body.whole(CONFIG_MAX_BYTES), CONFIG_MAX_BYTES);
  const rule = child(root, 'Rule');
  const byDefault = rule && child(rule, 'ApplyServerSideEncryptionByDefault');
  const algorithm = byDefault && textOf(byDefault, 'SSEAlgorithm');
  if (rule === undefined || byDefault === undefined || algorithm === undefined) {
    throw new S3Error('MalformedXML');
  }
  const keyId = textOf(byDefault, 'KMSMasterKeyID');
  if (algorithm === 'AES256') {
    if (keyId !== undefined) {
      const message = 'a KMSMasterKeyID is not applicable if the default sse algorithm is not aws:kms';
      throw new S3Error('InvalidArgument', message);
    }
    await call.tools.storage.buckets.change(call, name, { encryption: true, namedKey: null });
    return {};
  }
  if (algorithm === 'aws:kms:dsse') throw new S3Error('NotImplemented', `${algorithm} is not offered here`);
  if (algorithm !== 'aws:kms') throw new S3Error('MalformedXML');
  if (keyId === undefined || keyId === '') {
    const message = 'aws:kms needs a KMSMasterKeyID, the name of an encryption key of the account';
    throw new S3Error('InvalidArgument', message);
  }
  const namedKey = { keyId, bucketKey: textOf(rule, 'BucketKeyEnabled') === 'true' };
  await call.tools.storage.buckets.change(call, name, { encryption: true, namedKey });
  return {};
}

async function deleteEncryption(call: S3Call): Promise<S3Answer> {
  const { name } = await bucketOf(call);
  await call.tools.storage.buckets.change(call, name, { encryption: false });
  return { status: 204 };
}
