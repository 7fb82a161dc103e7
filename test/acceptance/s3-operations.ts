/** Every operation of S3, for the test that walks them; a test beside the server's list compares the two. */

export interface Operation {
  readonly method: string;
  readonly level: 'service' | 'bucket' | 'object';
  readonly query?: readonly string[];
  readonly header?: string;
}

/** Settings of a bucket that answer that there are none. */
const ABSENT = [
  'accelerate',
  'analytics',
  'intelligent-tiering',
  'inventory',
  'logging',
  'metrics',
  'notification',
  'replication',
  'requestPayment',
  'website',
];

const OFFERED: Readonly<Record<string, Operation>> = {
  UploadPartCopy: {
    method: 'PUT',
    level: 'object',
    query: ['partNumber', 'uploadId'],
    header: 'x-amz-copy-source',
  },
  DeleteBucketWebsite: { method: 'DELETE', level: 'bucket', query: ['website'] },
  DeleteBucketReplication: { method: 'DELETE', level: 'bucket', query: ['replication'] },
  UploadPart: { method: 'PUT', level: 'object', query: ['partNumber', 'uploadId'] },
  CreateMultipartUpload: { method: 'POST', level: 'object', query: ['uploads'] },
  CompleteMultipartUpload: { method: 'POST', level: 'object', query: ['uploadId'] },
  AbortMultipartUpload: { method: 'DELETE', level: 'object', query: ['uploadId'] },
  ListParts: { method: 'GET', level: 'object', query: ['uploadId'] },
  DeleteObjects: { method: 'POST', level: 'bucket', query: ['delete'] },
  GetObjectAttributes: { method: 'GET', level: 'object', query: ['attributes'] },
  GetObjectTagging: { method: 'GET', level: 'object', query: ['tagging'] },
  PutObjectTagging: { method: 'PUT', level: 'object', query: ['tagging'] },
  DeleteObjectTagging: { method: 'DELETE', level: 'object', query: ['tagging'] },
  GetBucketAcl: { method: 'GET', level: 'bucket', query: ['acl'] },
  PutBucketAcl: { method: 'PUT', level: 'bucket', query: ['acl'] },
  GetObjectAcl: { method: 'GET', level: 'object', query: ['acl'] },
  PutObjectAcl: { method: 'PUT', level: 'object', query: ['acl'] },
  ListObjectsV2: { method: 'GET', level: 'bucket', query: ['list-type'] },
  ListObjectVersions: { method: 'GET', level: 'bucket', query: ['versions'] },
  ListMultipartUploads: { method: 'GET', level: 'bucket', query: ['uploads'] },
  GetBucketLocation: { method: 'GET', level: 'bucket', query: ['location'] },
  GetBucketVersioning: { method: 'GET', level: 'bucket', query: ['versioning'] },
  PutBucketVersioning: { method: 'PUT', level: 'bucket', query: ['versioning'] },
  GetBucketTagging: { method: 'GET', level: 'bucket', query: ['tagging'] },
  PutBucketTagging: { method: 'PUT', level: 'bucket', query: ['tagging'] },
  DeleteBucketTagging: { method: 'DELETE', level: 'bucket', query: ['tagging'] },
  GetBucketCors: { method: 'GET', level: 'bucket', query: ['cors'] },
  PutBucketCors: { method: 'PUT', level: 'bucket', query: ['cors'] },
  DeleteBucketCors: { method: 'DELETE', level: 'bucket', query: ['cors'] },
  GetObjectLockConfiguration: { method: 'GET', level: 'bucket', query: ['object-lock'] },
  PutObjectLockConfiguration: { method: 'PUT', level: 'bucket', query: ['object-lock'] },
  GetBucketLifecycleConfiguration: { method: 'GET', level: 'bucket', query: ['lifecycle'] },
  PutBucketLifecycleConfiguration: { method: 'PUT', level: 'bucket', query: ['lifecycle'] },
  DeleteBucketLifecycle: { method: 'DELETE', level: 'bucket', query: ['lifecycle'] },
  GetObjectRetention: { method: 'GET', level: 'object', query: ['retention'] },
  PutObjectRetention: { method: 'PUT', level: 'object', query: ['retention'] },
  GetObjectLegalHold: { method: 'GET', level: 'object', query: ['legal-hold'] },
  PutObjectLegalHold: { method: 'PUT', level: 'object', query: ['legal-hold'] },
  GetBucketPolicy: { method: 'GET', level: 'bucket', query: ['policy'] },
  PutBucketPolicy: { method: 'PUT', level: 'bucket', query: ['policy'] },
  DeleteBucketPolicy: { method: 'DELETE', level: 'bucket', query: ['policy'] },
  GetBucketPolicyStatus: { method: 'GET', level: 'bucket', query: ['policyStatus'] },
  GetPublicAccessBlock: { method: 'GET', level: 'bucket', query: ['publicAccessBlock'] },
  PutPublicAccessBlock: { method: 'PUT', level: 'bucket', query: ['publicAccessBlock'] },
  DeletePublicAccessBlock: { method: 'DELETE', level: 'bucket', query: ['publicAccessBlock'] },
  GetBucketOwnershipControls: { method: 'GET', level: 'bucket', query: ['ownershipControls'] },
  PutBucketOwnershipControls: { method: 'PUT', level: 'bucket', query: ['ownershipControls'] },
  DeleteBucketOwnershipControls: { method: 'DELETE', level: 'bucket', query: ['ownershipControls'] },
  GetBucketEncryption: { method: 'GET', level: 'bucket', query: ['encryption'] },
  DeleteBucketEncryption: { method: 'DELETE', level: 'bucket', query: ['encryption'] },
  PutBucketEncryption: { method: 'PUT', level: 'bucket', query: ['encryption'] },
  CopyObject: { method: 'PUT', level: 'object', header: 'x-amz-copy-source' },
  PutObject: { method: 'PUT', level: 'object' },
  GetObject: { method: 'GET', level: 'object' },
  HeadObject: { method: 'HEAD', level: 'object' },
  DeleteObject: { method: 'DELETE', level: 'object' },
  ListObjects: { method: 'GET', level: 'bucket' },
  ListBuckets: { method: 'GET', level: 'service' },
  CreateBucket: { method: 'PUT', level: 'bucket' },
  HeadBucket: { method: 'HEAD', level: 'bucket' },
  PostObject: { method: 'POST', level: 'bucket' },
  DeleteBucket: { method: 'DELETE', level: 'bucket' },
};

/** Operations that a key that may only append is let through to. */
export const APPENDS: readonly string[] = [
  'UploadPartCopy',
  'UploadPart',
  'CreateMultipartUpload',
  'CompleteMultipartUpload',
  'AbortMultipartUpload',
  'DeleteObjects',
  'CopyObject',
  'PostObject',
  'PutObject',
  'PutObjectRetention',
  'DeleteObject',
];

/** Operations that need the scope `storage:admin`. */
export const ADMINISTERS: readonly string[] = [
  'PutBucketTagging',
  'DeleteBucketTagging',
  'DeleteBucketWebsite',
  'DeleteBucketReplication',
  'PutBucketAcl',
  'PutObjectAcl',
  'PutBucketCors',
  'DeleteBucketCors',
  'PutObjectLockConfiguration',
  'PutBucketLifecycleConfiguration',
  'DeleteBucketLifecycle',
  'PutObjectLegalHold',
  'PutBucketPolicy',
  'DeleteBucketPolicy',
  'PutPublicAccessBlock',
  'DeletePublicAccessBlock',
  'PutBucketOwnershipControls',
  'DeleteBucketOwnershipControls',
];

/** AWS' actions, where they are not named like the operation. */
const ACTIONS: Readonly<Record<string, string>> = {
  CompleteMultipartUpload: 'PutObject',
  CopyObject: 'PutObject',
  CreateMultipartUpload: 'PutObject',
  DeleteBucketCors: 'PutBucketCORS',
  DeleteBucketReplication: 'PutReplicationConfiguration',
  DeleteBucketEncryption: 'PutEncryptionConfiguration',
  GetBucketLifecycleConfiguration: 'GetLifecycleConfiguration',
  PutBucketLifecycleConfiguration: 'PutLifecycleConfiguration',
  DeleteBucketLifecycle: 'PutLifecycleConfiguration',
  GetObjectLockConfiguration: 'GetBucketObjectLockConfiguration',
  PutObjectLockConfiguration: 'PutBucketObjectLockConfiguration',
  DeleteBucketOwnershipControls: 'PutBucketOwnershipControls',
  DeleteBucketTagging: 'PutBucketTagging',
  DeleteObjects: 'DeleteObject',
  DeletePublicAccessBlock: 'PutBucketPublicAccessBlock',
  GetBucketCors: 'GetBucketCORS',
  GetBucketEncryption: 'GetEncryptionConfiguration',
  GetPublicAccessBlock: 'GetBucketPublicAccessBlock',
  HeadBucket: 'ListBucket',
  HeadObject: 'GetObject',
  ListBuckets: 'ListAllMyBuckets',
  ListMultipartUploads: 'ListBucketMultipartUploads',
  ListObjects: 'ListBucket',
  ListObjectsV2: 'ListBucket',
  ListObjectVersions: 'ListBucketVersions',
  PostObject: 'PutObject',
  ListParts: 'ListMultipartUploadParts',
  PutBucketCors: 'PutBucketCORS',
  PutBucketEncryption: 'PutEncryptionConfiguration',
  PutPublicAccessBlock: 'PutBucketPublicAccessBlock',
  UploadPart: 'PutObject',
  UploadPartCopy: 'PutObject',
  'GetBucket-accelerate': 'GetAccelerateConfiguration',
  'GetBucket-analytics': 'GetAnalyticsConfiguration',
  'GetBucket-intelligent-tiering': 'GetIntelligentTieringConfiguration',
  'GetBucket-inventory': 'GetInventoryConfiguration',
  'GetBucket-logging': 'GetBucketLogging',
  'GetBucket-metrics': 'GetMetricsConfiguration',
  'GetBucket-notification': 'GetBucketNotification',
  'GetBucket-replication': 'GetReplicationConfiguration',
  'GetBucket-requestPayment': 'GetBucketRequestPayment',
  'GetBucket-website': 'GetBucketWebsite',
};

interface NamedOperation extends Operation {
  readonly name: string;
  readonly isRead: boolean;
  /** As policies say it. */
  readonly action: string;
}

export const OPERATIONS: readonly NamedOperation[] = [
  ...Object.entries(OFFERED),
  ...ABSENT.map((name) => [`GetBucket-${name}`, { method: 'GET', level: 'bucket', query: [name] }] as const),
].map(([name, operation]) => ({
  ...operation,
  name,
  isRead: ['GET', 'HEAD'].includes(operation.method),
  action: `s3:${ACTIONS[name] ?? name}`,
}));
