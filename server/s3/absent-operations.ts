/**
 * Unsupported settings. Clients such as Terraform and rclone read many bucket settings: each
 * responds like AWS for an unset one. Setting one is refused, so that nobody relies on it.
 */

import { bareDocument, type S3Code, S3Error, type XmlNode, xmlDocument } from '../../libs/s3-wire/index.ts';
import { type Action, bucketOf, type S3Answer, type S3Call, type S3Operation } from './s3-call.ts';

/** The actions for reading them, if AWS' name is not `s3:GetBucket` and the name of the parameter. */
const ACTIONS: Readonly<Record<string, Action>> = {
  accelerate: 's3:GetAccelerateConfiguration',
  analytics: 's3:GetAnalyticsConfiguration',
  'intelligent-tiering': 's3:GetIntelligentTieringConfiguration',
  inventory: 's3:GetInventoryConfiguration',
  lifecycle: 's3:GetLifecycleConfiguration',
  metrics: 's3:GetMetricsConfiguration',
  'object-lock': 's3:GetBucketObjectLockConfiguration',
  replication: 's3:GetReplicationConfiguration',
};

/** The root element of an empty setting, or the error code that reports its absence. */
const EMPTY: Readonly<Record<string, { readonly root: string; readonly content?: XmlNode } | S3Code>> = {
  accelerate: { root: 'AccelerateConfiguration' },
  analytics: { root: 'ListBucketAnalyticsConfigurationResult', content: [['IsTruncated', false]] },
  'intelligent-tiering': {
    root: 'ListBucketIntelligentTieringConfigurationsOutput',
    content: [['IsTruncated', false]],
  },
  inventory: { root: 'ListInventoryConfigurationsResult', content: [['IsTruncated', false]] },
  logging: { root: 'BucketLoggingStatus' },
  metrics: { root: 'ListMetricsConfigurationsResult', content: [['IsTruncated', false]] },
  notification: { root: 'NotificationConfiguration' },
  replication: 'ReplicationConfigurationNotFoundError',
  requestPayment: { root: 'RequestPaymentConfiguration', content: [['Payer', 'BucketOwner']] },
  website: 'NoSuchWebsiteConfiguration',
};
const ON_OBJECTS = ['restore', 'select', 'torrent'];
/** Query parameters that name something other than the bucket or object itself. */
export const SUB_RESOURCES: ReadonlySet<string> = new Set([
  ...Object.keys(EMPTY),
  ...ON_OBJECTS,
  'abac',
  'acl',
  'append',
  'metadataConfiguration',
  'metadataInventoryTable',
  'metadataJournalTable',
  'metadataTable',
  'ownershipControls',
  'policy',
  'policyStatus',
  'publicAccessBlock',
  'renameObject',
  'session',
]);

/** Removing an unsupported setting succeeds, because it is not set. */
const REMOVED = [
  ['DeleteBucketWebsite', 's3:DeleteBucketWebsite', 'website'],
  ['DeleteBucketReplication', 's3:PutReplicationConfiguration', 'replication'],
] as const;

const REMOVALS: readonly S3Operation[] = REMOVED.map(([name, action, query]) => ({
  name,
  action,
  method: 'DELETE',
  level: 'bucket',
  query: [query],
  permission: 'storage:admin',
  run: ({ who: { caller } }: S3Call) => {
    if (caller.bucketLimits !== null)
      throw new S3Error('AccessDenied', 'This key is limited to certain buckets');
    return { status: 204 };
  },
}));

const READS: readonly S3Operation[] = Object.entries(EMPTY).map(([name, empty]) => ({
  name: `GetBucket-${name}`,
  action: ACTIONS[name] ?? `s3:GetBucket${name.charAt(0).toUpperCase()}${name.slice(1)}`,
  method: 'GET',
  level: 'bucket',
  query: [name],
  permission: 'storage:read',
  run: async (call: S3Call): Promise<S3Answer> => {
    await bucketOf(call);
    if (typeof empty === 'string') throw new S3Error(empty);
    // An item of a list that is always empty.
    if (call.what.target.query.has('id')) throw new S3Error('NoSuchConfiguration');
    return { xml: xmlDocument(empty.root, empty.content ?? []) };
  },
}));

export const ABSENT_OPERATIONS: readonly S3Operation[] = [...READS, ...REMOVALS];

/** The refusal of a call to IAM, STS or SNS, in the form that SDKs read. */
export function otherServiceDocument({ code, message }: S3Error, requestId: string): string {
  const error = [
    ['Type', 'Sender'],
    ['Code', code],
    ['Message', message],
  ] as const;
  return bareDocument('ErrorResponse', [
    ['Error', error],
    ['RequestId', requestId],
  ]);
}

/** Throws S3Error NotImplemented, which names the operation. */
export function refuseAbsent(what: string): never {
  if (what === 'torrent') throw new S3Error('NoSuchKey');
  throw new S3Error('NotImplemented', `${what} is not offered here; see docs/s3.md`, {
    fields: { Header: what },
  });
}
