/** Operations on the service and on buckets, without the lists of what is in them. */
import { isAppError } from '../platform/errors.ts';
import { settingsOf } from '../storage/bucket-settings.ts';
import type { BucketRow } from '../storage/buckets.ts';
import { VERSIONING } from '../storage/schema.ts';
import { bucketOf, isoTime, numberOf, type S3Answer, type S3Call, type S3Operation } from './s3-call.ts';
import { S3Error } from './s3-error.ts';
import { child, parseXml, textOf, xmlDocument } from './xml.ts';

const CONFIG_MAX_BYTES = 64 * 1024;
const MAX_BUCKETS = 10_000;
const US_EAST_1 = 'us-east-1';
/** Amazon's rules beyond ours. */
const RESERVED = /\.\.|\.-|-\.|^xn--|^sthree-|-s3alias$|--ol-s3$|^\d+\.\d+\.\d+\.\d+$/;

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

/** The owner of what an account has. */
export function ownerOf({ principal }: Pick<S3Call, 'principal'>) {
  return [
    ['ID', principal.canonicalId],
    ['DisplayName', principal.username],
  ] as const;
}

async function listBuckets(call: S3Call): Promise<S3Answer> {
  const { query } = call.target;
  const prefix = query.get('prefix') ?? '';
  const after = query.get('continuation-token') ?? '';
  const limit = numberOf(call, 'max-buckets', { max: MAX_BUCKETS, absent: MAX_BUCKETS });
  const found: BucketRow[] = [];
  for await (const { row } of call.storage.buckets.list(call.principal, 0, Number.POSITIVE_INFINITY)) {
    if (row.name.startsWith(prefix) && row.name > after) found.push(row);
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
      ['Owner', ownerOf(call)],
      ['Buckets', buckets],
      ['ContinuationToken', last],
      ['Prefix', query.has('prefix') ? prefix : undefined],
    ]),
  };
}

async function createBucket(call: S3Call): Promise<S3Answer> {
  const name = call.target.bucket ?? '';
  const body = await call.body.whole(CONFIG_MAX_BYTES);
  const canned = call.headers['x-amz-acl'];
  if (canned !== undefined && canned !== 'private') throw new S3Error('AccessControlListNotSupported');
  if (RESERVED.test(name)) throw new S3Error('InvalidBucketName');
  const isLockable = call.headers['x-amz-bucket-object-lock-enabled']?.toString().toLowerCase() === 'true';
  const locking = isLockable ? { versioning: true, settings: { lock: {} } } : {};
  const region =
    body.length === 0 ? '' : (textOf(parseXml(body, CONFIG_MAX_BYTES), 'LocationConstraint') ?? '');
  try {
    await call.storage.buckets.create(call, { name, region: region || US_EAST_1, ...locking });
  } catch (error) {
    if (isAppError(error, 'invalid_request')) throw new S3Error('InvalidLocationConstraint');
    throw error;
  }
  return { headers: { location: `/${name}` } };
}

async function headBucket(call: S3Call): Promise<S3Answer> {
  const { region } = await bucketOf(call);
  return { headers: { 'x-amz-bucket-region': region, 'content-type': 'application/xml' } };
}

async function deleteBucket(call: S3Call): Promise<S3Answer> {
  const { name } = await bucketOf(call);
  await call.storage.bucketEmptier.removeEmpty(call, name);
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
  const root = parseXml(await call.body.whole(CONFIG_MAX_BYTES), CONFIG_MAX_BYTES);
  const status = textOf(root, 'Status');
  if (textOf(root, 'MfaDelete') === 'Enabled')
    throw new S3Error('NotImplemented', 'MFA delete is not offered here');
  if (root.name !== 'VersioningConfiguration' || (status !== 'Enabled' && status !== 'Suspended')) {
    throw new S3Error('MalformedXML');
  }
  try {
    await call.storage.buckets.change(call, name, { versioning: status === 'Enabled', suspends: true });
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
  const root = parseXml(await call.body.whole(CONFIG_MAX_BYTES), CONFIG_MAX_BYTES);
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
    await call.storage.buckets.change(call, name, { encryption: true, namedKey: null });
    return {};
  }
  if (algorithm !== 'aws:kms') throw new S3Error('NotImplemented', `${algorithm} is not offered here`);
  if (keyId === undefined || keyId === '') {
    const message = 'aws:kms needs a KMSMasterKeyID, the name of an encryption key of the account';
    throw new S3Error('InvalidArgument', message);
  }
  const namedKey = { keyId, bucketKey: textOf(rule, 'BucketKeyEnabled') === 'true' };
  await call.storage.buckets.change(call, name, { encryption: true, namedKey });
  return {};
}

async function deleteEncryption(call: S3Call): Promise<S3Answer> {
  const { name } = await bucketOf(call);
  await call.storage.buckets.change(call, name, { encryption: false });
  return { status: 204 };
}
