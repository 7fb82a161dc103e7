/**
 * Failures as S3 clients know them. Codes, statuses and messages are Amazon's
 * (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html); clients decide by code and status.
 */

/** Each code with its status and default message. */
export const S3_ERRORS = {
  AccessControlListNotSupported: { status: 400, message: 'The bucket does not allow ACLs' },
  AccessDenied: { status: 403, message: 'Access Denied' },
  AccessForbidden: { status: 403, message: 'CORSResponse: This CORS request is not allowed' },
  AuthorizationHeaderMalformed: { status: 400, message: 'The authorization header is malformed' },
  AuthorizationQueryParametersError: { status: 400, message: 'The authorization parameters are not valid' },
  BadDigest: { status: 400, message: 'The digest you specified did not match what was received' },
  BadRequest: { status: 400, message: 'Bad Request' },
  BucketAlreadyExists: { status: 409, message: 'The requested bucket name is not available' },
  BucketAlreadyOwnedByYou: { status: 409, message: 'You already own a bucket of this name' },
  BucketNotEmpty: { status: 409, message: 'The bucket you tried to delete is not empty' },
  ConditionalRequestConflict: { status: 409, message: 'A conflicting operation occurred; try again' },
  EntityTooLarge: { status: 400, message: 'Your proposed upload exceeds the maximum allowed size' },
  EntityTooSmall: { status: 400, message: 'Your proposed upload is smaller than the minimum allowed size' },
  ExpiredToken: { status: 400, message: 'The provided token has expired' },
  IllegalLocationConstraintException: {
    status: 400,
    message: 'The location constraint is not supported here',
  },
  IllegalVersioningConfigurationException: { status: 400, message: 'The versioning state is not valid' },
  IncompleteBody: { status: 400, message: 'The request body is not complete, or not as long as announced' },
  InternalError: { status: 500, message: 'We encountered an internal error. Please try again.' },
  InvalidAccessKeyId: { status: 403, message: 'The access key id you provided does not exist' },
  InvalidArgument: { status: 400, message: 'Invalid Argument' },
  InvalidBucketAclWithObjectOwnership: {
    status: 400,
    message: 'Bucket cannot have ACLs set with ObjectOwnership BucketOwnerEnforced',
  },
  InvalidBucketName: { status: 400, message: 'The specified bucket is not valid' },
  InvalidBucketState: {
    status: 409,
    message: 'The request is not valid with the current state of the bucket',
  },
  InvalidChunkSizeError: { status: 403, message: 'Only the last chunk may have fewer than 8192 bytes' },
  InvalidDigest: { status: 400, message: 'The Content-MD5 or checksum you specified is not valid' },
  InvalidEncryptionAlgorithmError: { status: 400, message: 'The encryption request is not valid' },
  InvalidLocationConstraint: { status: 400, message: 'The specified location constraint is not valid' },
  InvalidObjectState: { status: 403, message: 'The operation is not valid for the state of the object' },
  InvalidPart: { status: 400, message: 'One or more of the specified parts could not be found' },
  InvalidPartNumber: { status: 416, message: 'The requested part number is not satisfiable' },
  InvalidPartOrder: { status: 400, message: 'The list of parts was not in ascending order' },
  InvalidPolicyDocument: { status: 400, message: 'The content of the form does not meet the policy' },
  InvalidRange: { status: 416, message: 'The requested range is not satisfiable' },
  InvalidRequest: { status: 400, message: 'Invalid Request' },
  InvalidRetentionPeriod: { status: 400, message: 'The retention period is not valid' },
  InvalidStorageClass: { status: 400, message: 'The storage class you specified is not valid' },
  InvalidTag: { status: 400, message: 'The tag provided was not a valid tag' },
  InvalidToken: { status: 400, message: 'The provided token is malformed or otherwise not valid' },
  InvalidURI: { status: 400, message: "Couldn't parse the specified URI" },
  KeyTooLongError: { status: 400, message: 'Your key is too long' },
  'KMS.DisabledException': { status: 400, message: 'The encryption key is disabled' },
  'KMS.NotFoundException': { status: 400, message: 'The encryption key does not exist' },
  MalformedACLError: { status: 400, message: 'The ACL is not well-formed or not valid' },
  MalformedPolicy: { status: 400, message: 'The policy has an invalid element' },
  MalformedPOSTRequest: {
    status: 400,
    message: 'The body of your POST request is not well-formed form data',
  },
  MalformedTrailerError: {
    status: 400,
    message: 'The trailers of the request are malformed or not as declared',
  },
  MalformedXML: { status: 400, message: 'The XML you provided was not well-formed or not as expected' },
  MaxMessageLengthExceeded: { status: 400, message: 'Your request was too big' },
  MaxPostPreDataLengthExceededError: {
    status: 400,
    message: 'Your POST request fields preceding the upload file were too large.',
  },
  MetadataTooLarge: { status: 400, message: 'Your metadata headers exceed the maximum allowed size' },
  MethodNotAllowed: { status: 405, message: 'The specified method is not allowed against this resource' },
  MissingAttachment: { status: 400, message: 'A file was expected' },
  MissingContentLength: { status: 411, message: 'You must provide the Content-Length HTTP header' },
  MissingRequestBodyError: { status: 400, message: 'Request Body is empty' },
  MissingSecurityHeader: { status: 400, message: 'Your request was missing a required header' },
  NoSuchBucket: { status: 404, message: 'The specified bucket does not exist' },
  NoSuchBucketPolicy: { status: 404, message: 'The bucket policy does not exist' },
  NoSuchConfiguration: { status: 404, message: 'The specified configuration does not exist' },
  NoSuchCORSConfiguration: { status: 404, message: 'The CORS configuration does not exist' },
  NoSuchKey: { status: 404, message: 'The specified key does not exist' },
  NoSuchLifecycleConfiguration: { status: 404, message: 'The lifecycle configuration does not exist' },
  NoSuchObjectLockConfiguration: { status: 404, message: 'The object has no object lock configuration' },
  NoSuchPublicAccessBlockConfiguration: {
    status: 404,
    message: 'The public access block configuration was not found',
  },
  NoSuchTagSet: { status: 404, message: 'The TagSet does not exist' },
  NoSuchUpload: { status: 404, message: 'The upload does not exist; it may have been aborted or completed' },
  NoSuchVersion: { status: 404, message: 'The specified version does not exist' },
  NoSuchWebsiteConfiguration: { status: 404, message: 'The bucket has no website configuration' },
  NotImplemented: {
    status: 501,
    message: 'A header or parameter you provided implies functionality that is not supported',
  },
  NotModified: { status: 304, message: 'Not Modified' },
  ObjectLockConfigurationNotFoundError: {
    status: 404,
    message: 'Object Lock configuration does not exist for this bucket',
  },
  OperationAborted: { status: 409, message: 'A conflicting operation is in progress; try again' },
  OwnershipControlsNotFoundError: { status: 404, message: 'The bucket ownership controls were not found' },
  PermanentRedirect: { status: 301, message: 'The bucket must be addressed using the specified endpoint' },
  PreconditionFailed: { status: 412, message: 'At least one of the preconditions did not hold' },
  QuotaExceeded: { status: 403, message: 'The quota of the account is exceeded' },
  ReplicationConfigurationNotFoundError: {
    status: 404,
    message: 'The replication configuration was not found',
  },
  RequestHeaderSectionTooLarge: { status: 400, message: 'Your request headers are too large' },
  RequestTimeout: { status: 400, message: 'Your connection was not read from or written to in time' },
  RequestTimeTooSkewed: { status: 403, message: "The request's time differs too much from the server's" },
  ServerSideEncryptionConfigurationNotFoundError: {
    status: 404,
    message: 'The server side encryption configuration was not found',
  },
  ServiceUnavailable: { status: 503, message: 'Please reduce your request rate, or try again later' },
  SignatureDoesNotMatch: {
    status: 403,
    message: 'The signature you provided does not match: check your secret key and how you sign',
  },
  SlowDown: { status: 503, message: 'Please reduce your request rate' },
  TooManyBuckets: { status: 400, message: 'You have reached the maximum number of buckets' },
  UnexpectedContent: { status: 400, message: 'This request contains unsupported content' },
  UnresolvableGrantByEmailAddress: {
    status: 400,
    message: 'Accounts are not named by e-mail address here: use the canonical id',
  },
  UserKeyMustBeSpecified: { status: 400, message: 'The form must have the field key' },
  XAmzContentSHA256Mismatch: {
    status: 400,
    message: "The provided 'x-amz-content-sha256' header does not match what was computed",
  },
} as const satisfies Record<string, { status: number; message: string }>;

export type S3Code = keyof typeof S3_ERRORS;

export interface S3ErrorExtras {
  /** Additional elements of the document, for programs: `<BucketName>`, `<Region>`. Public. */
  readonly fields?: Readonly<Record<string, string>>;
  /** Response headers that belong to the error itself. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Private: logged, never rendered. */
  readonly cause?: unknown;
}

export class S3Error extends Error {
  readonly code: S3Code;
  readonly status: number;
  readonly fields: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;

  /** `message` is public; default: the code's own. */
  constructor(code: S3Code, message: string = S3_ERRORS[code].message, extras: S3ErrorExtras = {}) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause });
    this.name = 'S3Error';
    this.code = code;
    this.status = S3_ERRORS[code].status;
    this.fields = extras.fields ?? {};
    this.headers = extras.headers ?? {};
  }
}
