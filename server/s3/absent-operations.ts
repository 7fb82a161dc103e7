/**
 * Unsupported settings. Clients such as Terraform and rclone read many bucket settings: each
 * responds like AWS for an unset one. Setting one is refused, so that nobody relies on it, unless the value
 * is the effective one.
 */

import {
  bareDocument,
  parseXml,
  type S3Code,
  S3Error,
  textOf,
  type XmlElement,
  type XmlNode,
  xmlDocument,
} from '../../libs/s3-wire/index.ts';
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

function refuseLimited({ who: { caller } }: S3Call): void {
  if (caller.bucketLimits !== null)
    throw new S3Error('AccessDenied', 'This key is limited to certain buckets');
}

const REMOVALS: readonly S3Operation[] = REMOVED.map(([name, action, query]) => ({
  name,
  action,
  method: 'DELETE',
  level: 'bucket',
  query: [query],
  permission: 'storage:admin',
  run: (call: S3Call) => {
    refuseLimited(call);
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

/**
 * Sets a value that applies anyway: Terraform and SDKs remove a setting this way if it has no DELETE. The
 * text of `value` must be `is`, or, without one, the document must be empty.
 */
const DEFAULTS: readonly {
  readonly name: string;
  readonly action: Action;
  readonly query: string;
  readonly root: string;
  readonly value?: readonly [name: string, is: string];
}[] = [
  { name: 'PutBucketLogging', action: 's3:PutBucketLogging', query: 'logging', root: 'BucketLoggingStatus' },
  {
    name: 'PutBucketNotificationConfiguration',
    action: 's3:PutBucketNotification',
    query: 'notification',
    root: 'NotificationConfiguration',
  },
  {
    name: 'PutBucketAccelerateConfiguration',
    action: 's3:PutAccelerateConfiguration',
    query: 'accelerate',
    root: 'AccelerateConfiguration',
    value: ['Status', 'Suspended'],
  },
  {
    name: 'PutBucketRequestPayment',
    action: 's3:PutBucketRequestPayment',
    query: 'requestPayment',
    root: 'RequestPaymentConfiguration',
    value: ['Payer', 'BucketOwner'],
  },
];
const DEFAULT_MAX_BYTES = 16 * 1024;

const isDefault = (document: XmlElement, value: readonly [string, string] | undefined) =>
  value === undefined ? document.children.length === 0 : textOf(document, value[0])?.trim() === value[1];

const SET_TO_DEFAULTS: readonly S3Operation[] = DEFAULTS.map(({ name, action, query, root, value }) => ({
  name,
  action,
  method: 'PUT',
  level: 'bucket',
  query: [query],
  permission: 'storage:admin',
  run: async (call: S3Call): Promise<S3Answer> => {
    refuseLimited(call);
    await bucketOf(call);
    const document = parseXml(await call.what.body.whole(DEFAULT_MAX_BYTES), DEFAULT_MAX_BYTES);
    if (document.name !== root) throw new S3Error('MalformedXML');
    if (!isDefault(document, value)) return refuseAbsent(query);
    return { status: 200 };
  },
}));

export const ABSENT_OPERATIONS: readonly S3Operation[] = [...READS, ...SET_TO_DEFAULTS, ...REMOVALS];

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
