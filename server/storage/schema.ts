/** API schemas of object storage. */
import { namedObject, type Static, Type, textOrNull } from '../platform/json/json-schema.ts';

export const Bucket = namedObject('Bucket', {
  name: Type.String(),
  region: Type.String(),
  versioning: Type.Boolean(),
  encryption: Type.Boolean(),
  created_at: Type.String(),
  object_count: Type.Integer({ description: 'Live objects' }),
  size: Type.Integer({ description: 'Bytes of live objects' }),
  size_formatted: Type.String(),
  version_count: Type.Integer({ description: 'Versions with bytes, live ones included' }),
  total_size: Type.Integer({ description: 'Bytes of all versions' }),
  metadata_size: Type.Integer({
    description:
      'Bytes of the names, types, metadata, headers, tags and ACLs of all versions and delete markers, and 256 for ' +
      'each row, which count as stored, like total_size',
  }),
  object_lock: Type.Boolean({
    description: 'Whether S3 clients may lock versions against removal',
  }),
});
export type Bucket = Static<typeof Bucket>;

/** A bucket that was ever versioned can only be suspended: its versions remain. */
export const VERSIONING = { off: 0, on: 1, suspended: 2 } as const;

export const NewBucket = namedObject('NewBucket', {
  name: Type.String({
    description:
      '3 to 63 lower-case letters, digits, dots and hyphens; begins and ends with a letter or digit',
  }),
  region: Type.Optional(
    Type.String({
      pattern: '^[a-z0-9-]{1,32}$',
      'x-rule': 'must be 1 to 32 characters from a-z, 0-9 and "-"',
      default: 'us-east-1',
    }),
  ),
  versioning: Type.Optional(Type.Boolean({ default: false })),
  encryption: Type.Optional(Type.Boolean({ default: false })),
});
export type NewBucket = Static<typeof NewBucket>;

export const BucketChange = namedObject('BucketChange', {
  versioning: Type.Optional(Type.Boolean()),
  encryption: Type.Optional(Type.Boolean({ description: 'Applies to later uploads' })),
});
export type BucketChange = Static<typeof BucketChange>;

export const NewEncryptionKey = namedObject('NewEncryptionKey', {
  id: Type.String({
    pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$',
    'x-rule': 'must be 1 to 128 letters, digits, ".", "_" and "-", and begin with a letter or digit',
  }),
});

export const EncryptionKeyChange = namedObject('EncryptionKeyChange', { enabled: Type.Boolean() });

export const EncryptionKey = namedObject('EncryptionKey', {
  id: Type.String(),
  created_at: Type.String(),
  disabled_at: textOrNull('null: enabled'),
});
export type EncryptionKey = Static<typeof EncryptionKey>;

const SHARE_YEARS_SECONDS = 10 * 365 * 24 * 3600;

export const NewShare = namedObject('NewShare', {
  bucket: Type.String(),
  name: Type.String({
    description:
      'Name of an object, whose current bytes are shared; ends with "/": a folder; empty: the bucket',
  }),
  expires_in: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: SHARE_YEARS_SECONDS,
      description: 'Seconds; default: it does not expire',
    }),
  ),
  password: Type.Optional(
    Type.String({ minLength: 4, maxLength: 200, description: 'Password that visitors must enter' }),
  ),
  max_downloads: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000_000 })),
});
export type NewShare = Static<typeof NewShare>;

export const Share = namedObject('Share', {
  share_id: Type.String(),
  bucket: Type.String(),
  name: Type.String({ description: 'As in NewShare' }),
  url: Type.String({ description: 'The link, on the data origin' }),
  state: Type.Union([Type.Literal('active'), Type.Literal('expired'), Type.Literal('used_up')]),
  has_password: Type.Boolean(),
  expires_at: textOrNull('null: does not expire; valid until it is deleted'),
  max_downloads: Type.Union([Type.Integer(), Type.Null()], { description: 'null: no limit' }),
  downloads: Type.Integer({ description: 'So far' }),
  last_download_at: textOrNull(),
  created_at: Type.String(),
});
export type Share = Static<typeof Share>;

const Metadata = Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()]);

/** Only with `versions`, and only if a lock was ever set. */
export const ObjectLock = namedObject('ObjectLock', {
  mode: Type.Union([Type.Literal('GOVERNANCE'), Type.Literal('COMPLIANCE'), Type.Null()], {
    description: 'null: no retention',
  }),
  retain_until: textOrNull(),
  legal_hold: Type.Boolean(),
});
export type ObjectLock = Static<typeof ObjectLock>;

const entryMembers = {
  id: Type.String({ description: '`obj-…`, one for each name in a bucket' }),
  name: Type.String(),
  size: Type.Integer(),
  size_formatted: Type.String(),
  mime_type: Type.String(),
  created_at: Type.String(),
  last_accessed: textOrNull('Last download of this version; null: never'),
  etag: Type.String({ description: 'MD5 of the bytes, hex' }),
  storage_class: Type.String(),
  metadata: Metadata,
};

export const ObjectEntry = namedObject('StorageObject', {
  ...entryMembers,
  version_id: Type.Optional(Type.String({ description: 'Only with include_versions' })),
  is_latest: Type.Optional(Type.Boolean({ description: 'Only with include_versions' })),
  is_delete_marker: Type.Optional(Type.Boolean({ description: 'Only with include_versions' })),
  lock: Type.Optional(ObjectLock),
});
export type ObjectEntry = Static<typeof ObjectEntry>;

export const FolderSize = namedObject('FolderSize', {
  object_count: Type.Integer({ description: 'Live objects' }),
  size: Type.Integer({ description: 'Bytes of live objects' }),
  size_formatted: Type.String(),
  next_cursor: textOrNull('Cursor for the next call; null: everything is counted'),
});
export type FolderSize = Static<typeof FolderSize>;

export const BucketEntry = namedObject('BucketEntry', {
  kind: Type.Union([Type.Literal('folder'), Type.Literal('object')]),
  name: Type.String({ description: 'Full name; a folder’s ends with "/"' }),
  object: Type.Union([ObjectEntry, Type.Null()], {
    description: 'null for a folder; for a deleted object, the restorable version',
  }),
  deleted_at: Type.Optional(Type.String({ description: 'Only with deleted' })),
});
export type BucketEntry = Static<typeof BucketEntry>;

/** The pattern of a Content-Type. */
export const MIME_TYPE = '^[\\w!#$&^.+-]+/[\\w!#$&^.+-]+(; charset=[\\w.:+-]+)?$';
export const MIME_TYPE_MAX_LENGTH = 255;

export const ObjectPlace = namedObject('ObjectPlace', {
  bucket: Type.Optional(Type.String({ description: 'Default: the bucket of the object' })),
  name: Type.Optional(Type.String({ description: 'Default: the name of the object' })),
  overwrite: Type.Optional(
    Type.Boolean({ description: 'Whether to replace an existing object; default: refuse with 412' }),
  ),
});
export type ObjectPlace = Static<typeof ObjectPlace>;

export const ObjectChange = namedObject('ObjectChange', {
  metadata: Type.Optional(
    Type.Union([Type.Record(Type.String(), Type.Unknown()), Type.Null()], {
      description: 'Replaces all metadata; null: none. At most 8 KiB as JSON',
    }),
  ),
  mime_type: Type.Optional(
    Type.String({
      pattern: MIME_TYPE,
      maxLength: MIME_TYPE_MAX_LENGTH,
      'x-rule': 'must be a media type such as text/plain or "text/html; charset=utf-8"',
    }),
  ),
  version_id: Type.Optional(
    Type.String({ description: 'The expected current version; refused if another version is current' }),
  ),
});

export const VersionChoice = namedObject('VersionChoice', {
  version_id: Type.String({ description: 'An earlier version of the object' }),
});

export const ObjectDetails = namedObject('StorageObjectDetails', {
  ...entryMembers,
  bucket: Type.String(),
  version_id: Type.String(),
  is_delete_marker: Type.Boolean(),
  lock: Type.Optional(ObjectLock),
  versions: Type.Array(ObjectEntry, { description: 'Versions, newest first' }),
  versions_truncated: Type.Boolean({
    description: 'Whether there are older versions; the `Link` header has the next page',
  }),
});
export type ObjectDetails = Static<typeof ObjectDetails>;

export const UploadForm = namedObject('UploadForm', {
  file: Type.String({ format: 'binary', description: 'The bytes' }),
  name: Type.Optional(Type.String({ description: 'Object name; may contain "/". Default: the file name' })),
  metadata: Type.Optional(Type.String({ description: 'A JSON object, as text, of at most 8 KiB' })),
  storage_class: Type.Optional(Type.String({ enum: ['STANDARD'] })),
});

export const Uploaded = namedObject('UploadedObject', {
  object_id: Type.String(),
  version_id: Type.String(),
  etag: Type.String(),
  name: Type.String(),
  bucket: Type.String(),
  size: Type.Integer(),
  size_formatted: Type.String(),
  mime_type: Type.String(),
  storage_class: Type.String(),
  metadata: Metadata,
  created_at: Type.String(),
});
export type Uploaded = Static<typeof Uploaded>;

export const Deleted = namedObject('DeletedObject', {
  id: Type.String(),
  deleted: Type.Literal(true),
  version_id: textOrNull('The created delete marker, or the removed version'),
  is_delete_marker: Type.Boolean({ description: 'Whether a delete marker was created' }),
});
export type Deleted = Static<typeof Deleted>;

export const OpenUpload = namedObject('OpenUpload', {
  upload_id: Type.String({ examples: ['upl-01kd8vcz1p7m3s5t9w2x4y6z8a'] }),
  name: Type.String({ description: 'Name of the object that the upload creates' }),
  size: Type.Integer({ description: 'Bytes of the parts that have arrived' }),
  size_formatted: Type.String(),
  created_at: Type.String(),
  ends_at: Type.String({ description: 'When the upload is aborted unless completed' }),
});
export type OpenUpload = Static<typeof OpenUpload>;

export const EndedUpload = namedObject('EndedUpload', { upload_id: Type.String() });

export const BucketPoint = namedObject('BucketPoint', {
  point_id: Type.String(),
  created_at: Type.String({ description: 'Time of the recovery point' }),
});
export type BucketPoint = Static<typeof BucketPoint>;

export const NewBucketRestore = namedObject('NewBucketRestore', {
  point_id: Type.String(),
  name: Type.Optional(Type.String({ description: 'Only this object' })),
  version_id: Type.Optional(
    Type.String({
      description: 'Version to restore, with `name`. Default: the version current at the recovery point',
    }),
  ),
  prefix: Type.Optional(Type.String({ description: 'Only objects whose names begin with this prefix' })),
  to_bucket: Type.Optional(
    Type.String({
      description:
        'Target bucket; created with the settings in the point if missing. Default: the same bucket',
    }),
  ),
  existing: Type.Optional(
    Type.Union([Type.Literal('keep'), Type.Literal('replace')], {
      description:
        'What happens to a live object of the same name with other content. With versioning, the replaced version stays',
      default: 'keep',
    }),
  ),
  versions: Type.Optional(
    Type.Boolean({
      description:
        'Restores all versions and delete markers, in their order, with their times and locks. A new bucket also gets ' +
        'the settings. An existing bucket must have the same versioning and object lock; names that already have ' +
        'other versions are skipped. Not with `name` or `existing`',
      default: false,
    }),
  ),
  preview: Type.Optional(Type.Boolean({ description: 'Only count what would be restored', default: false })),
});
export type NewBucketRestore = Static<typeof NewBucketRestore>;

const RestoreRefusal = namedObject('RestoreRefusal', {
  name: Type.String({ description: 'The object' }),
  code: Type.String({ description: 'Error code' }),
  reason: Type.String(),
});

const LeftOut = namedObject('RestoreLeftOut', {
  what: Type.Union([
    Type.Literal('acl'),
    Type.Literal('lock'),
    Type.Literal('policy'),
    Type.Literal('lifecycle'),
    Type.Literal('public_access'),
    Type.Literal('encryption_key'),
  ]),
  count: Type.Integer({ description: 'Number of objects or rules concerned' }),
  reason: Type.String(),
});
export type LeftOut = Static<typeof LeftOut>;

export const BucketRestore = namedObject('BucketRestore', {
  point_id: Type.String(),
  bucket: Type.String(),
  to_bucket: Type.String(),
  preview: Type.Boolean(),
  objects: Type.Integer({
    description: 'Objects restored, or to be restored after a preview; with `versions`, each version counts',
  }),
  markers: Type.Integer({ description: 'Delete markers, restored with `versions`' }),
  size: Type.Integer({ description: 'Bytes of the restored objects' }),
  size_formatted: Type.String(),
  same: Type.Integer({ description: 'Objects skipped, because the existing object is equal' }),
  kept: Type.Integer({ description: 'Objects not restored, because the existing object differs' }),
  replaced: Type.Integer({ description: 'Objects among `objects` that replace an existing object' }),
  refused: Type.Integer({ description: 'Objects that could not be restored' }),
  refusals: Type.Array(RestoreRefusal, { description: 'First 20 objects that could not be restored' }),
  left_out: Type.Array(LeftOut, { description: 'Items that cannot be restored unchanged' }),
  refusal: textOrNull('After a preview: why the restore would be refused, such as a quota'),
});
export type BucketRestore = Static<typeof BucketRestore>;

export const CdnLink = namedObject('CdnLink', {
  cdn_url: Type.String({ description: 'Signed URL; needs no header, supports GET, HEAD, ranges and ETags' }),
  expires_at: Type.String(),
});
export type CdnLink = Static<typeof CdnLink>;

export const BucketPath = Type.Object({ name: Type.String({ $id: 'BucketName' }) });
export const UploadPath = Type.Object({
  name: Type.String({ $id: 'BucketName' }),
  upload_id: Type.String({ $id: 'UploadId' }),
});
export const ObjectPath = Type.Object({ id: Type.String({ $id: 'ObjectId' }) });
