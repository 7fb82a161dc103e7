/** Names of AWS' actions that policies may allow or deny. */

const ON_OBJECTS = [
  ...['AbortMultipartUpload', 'BypassGovernanceRetention', 'DeleteObject', 'DeleteObjectTagging'],
  ...[
    'DeleteObjectVersion',
    'DeleteObjectVersionTagging',
    'GetObject',
    'GetObjectAcl',
    'GetObjectAttributes',
  ],
  ...['GetObjectLegalHold', 'GetObjectRetention', 'GetObjectTagging', 'GetObjectTorrent', 'GetObjectVersion'],
  ...['GetObjectVersionAcl', 'GetObjectVersionAttributes', 'GetObjectVersionForReplication'],
  ...['GetObjectVersionTagging', 'GetObjectVersionTorrent', 'ListMultipartUploadParts'],
  ...['ObjectOwnerOverrideToBucketOwner', 'PutObject', 'PutObjectAcl', 'PutObjectLegalHold'],
  ...['PutObjectRetention', 'PutObjectTagging', 'PutObjectVersionAcl', 'PutObjectVersionTagging'],
  ...['ReplicateDelete', 'ReplicateObject', 'ReplicateTags', 'RestoreObject'],
];
const ON_BUCKETS = [
  ...['CreateBucket', 'DeleteBucket', 'DeleteBucketPolicy', 'DeleteBucketWebsite'],
  ...['GetAccelerateConfiguration', 'GetAnalyticsConfiguration', 'GetBucketAcl', 'GetBucketCORS'],
  ...['GetBucketLocation', 'GetBucketLogging', 'GetBucketNotification', 'GetBucketObjectLockConfiguration'],
  ...['GetBucketOwnershipControls', 'GetBucketPolicy', 'GetBucketPolicyStatus', 'GetBucketPublicAccessBlock'],
  ...['GetBucketRequestPayment', 'GetBucketTagging', 'GetBucketVersioning', 'GetBucketWebsite'],
  ...['GetEncryptionConfiguration', 'GetIntelligentTieringConfiguration', 'GetInventoryConfiguration'],
  ...['GetLifecycleConfiguration', 'GetMetricsConfiguration', 'GetReplicationConfiguration', 'ListBucket'],
  ...['ListBucketMultipartUploads', 'ListBucketVersions', 'PutAccelerateConfiguration'],
  ...['PutAnalyticsConfiguration', 'PutBucketAcl', 'PutBucketCORS', 'PutBucketLogging'],
  ...['PutBucketNotification', 'PutBucketObjectLockConfiguration', 'PutBucketOwnershipControls'],
  ...['PutBucketPolicy', 'PutBucketPublicAccessBlock', 'PutBucketRequestPayment', 'PutBucketTagging'],
  ...['PutBucketVersioning', 'PutBucketWebsite', 'PutEncryptionConfiguration'],
  ...['PutIntelligentTieringConfiguration', 'PutInventoryConfiguration', 'PutLifecycleConfiguration'],
  ...['PutMetricsConfiguration', 'PutReplicationConfiguration'],
];

type Kind = 'bucket' | 'object';
const KNOWN: readonly (readonly [kind: Kind, action: string])[] = [
  ...ON_OBJECTS.map((name) => ['object', `s3:${name}`] as const),
  ...ON_BUCKETS.map((name) => ['bucket', `s3:${name}`] as const),
];

export function isKnownAction(isMeant: (action: string) => boolean): boolean {
  return KNOWN.some(([, action]) => isMeant(action));
}

/** Resource kinds of the named actions. */
export function kindsOf(isMeant: (action: string) => boolean): Kind[] {
  const kinds: Kind[] = [];
  for (const [kind, action] of KNOWN) {
    if (!kinds.includes(kind) && isMeant(action)) kinds.push(kind);
  }
  return kinds;
}
