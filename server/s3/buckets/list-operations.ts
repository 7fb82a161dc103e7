/** Operations that list the content of a bucket. */

import { encodeKey, S3Error, type XmlNode, xmlDocument } from '../../../libs/s3-wire/index.ts';
import { isId } from '../../platform/ids.ts';
import type { BucketRow } from '../../storage/buckets/buckets.ts';
import type { EntryRow, ListedRow } from '../../storage/listing/name-listing.ts';
import { type NameQuery, shownId } from '../../storage/listing/name-listing.ts';
import {
  accessOf,
  accountNodes,
  assertVersionId,
  bucketOf,
  isoTime,
  numberOf,
  type S3Answer,
  type S3Call,
  type S3Operation,
  type S3Request,
} from '../s3-call.ts';
import { initiatorOf } from '../sign/initiator.ts';

const MAX_KEYS = 1000;
const LIST = { method: 'GET', level: 'bucket', permission: 'storage:read' } as const;

export const LIST_OPERATIONS: readonly S3Operation[] = [
  { ...LIST, name: 'ListObjects', action: 's3:ListBucket', run: listObjects },
  { ...LIST, name: 'ListObjectsV2', action: 's3:ListBucket', query: ['list-type'], run: listObjectsV2 },
  {
    ...LIST,
    name: 'ListObjectVersions',
    action: 's3:ListBucketVersions',
    query: ['versions'],
    run: listVersions,
  },
  {
    ...LIST,
    name: 'ListMultipartUploads',
    action: 's3:ListBucketMultipartUploads',
    query: ['uploads'],
    run: listUploads,
  },
];

/** Encoding of names: URL-encoded if the client requested it, since XML 1.0 cannot represent all of them. */
export function namesIn({ target }: S3Request): (name: string) => string {
  const type = target.query.get('encoding-type');
  if (type === undefined) return (name) => name;
  if (type === 'url') return encodeKey;
  throw new S3Error('InvalidArgument', 'Invalid Encoding Method specified in Request', {
    fields: { ArgumentName: 'encoding-type', ArgumentValue: type },
  });
}

/** The query of a list, for a key limited to certain names. Throws S3Error AccessDenied. */
function queryOf(call: S3Call, bucket: BucketRow, after: string | undefined): NameQuery {
  const { query } = call.what.target;
  const prefix = query.get('prefix') ?? '';
  if (query.get('allow-unordered') === 'true' && query.get('delimiter')) {
    throw new S3Error(
      'InvalidArgument',
      'A list with a delimiter is always in order: leave out allow-unordered',
    );
  }
  const limits = call.who.caller.bucketLimits?.filter((limit) => limit.bucket === bucket.name);
  if (limits && !limits.some((limit) => prefix.startsWith(limit.prefix))) throw new S3Error('AccessDenied');
  return {
    prefix,
    delimiter: query.get('delimiter') ?? '',
    after: after === undefined || after === '' ? null : after,
    limit: numberOf(call, query.has('max-uploads') ? 'max-uploads' : 'max-keys', {
      max: MAX_KEYS,
      absent: MAX_KEYS,
    }),
  };
}

function prefixNodes(prefixes: readonly string[], name: (text: string) => string) {
  return prefixes.map((prefix) => ['CommonPrefixes', [['Prefix', name(prefix)]]] as const);
}

/**
 * Whether a text is the same to clients that decode it and to those that do not. Amazon encodes the
 * prefix of ListObjects, too, but boto3 shows it undecoded; the Java SDK decodes it.
 */
function isReadAlike(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: those that XML forbids
  return !/[%+\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/.test(text);
}

async function listObjects(call: S3Call): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  const name = namesIn(call.what);
  const { query } = call.what.target;
  const marker = query.get('marker') ?? '';
  const asked = queryOf(call, bucket, marker);
  const page = await livePage(call, bucket, { asked, showsOwner: true });
  const { next } = page;
  return pageAnswer(call, { bucket, asked, page }, [
    ['Prefix', isReadAlike(asked.prefix) ? asked.prefix : name(asked.prefix)],
    ['Marker', name(marker)],
    // Without a delimiter, the last key of the page is the next marker.
    ['NextMarker', next === null || asked.delimiter === '' ? undefined : name(next)],
  ]);
}

async function listObjectsV2(call: S3Call): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  const name = namesIn(call.what);
  const { query } = call.what.target;
  if (query.get('list-type') !== '2') throw new S3Error('InvalidArgument', 'The list type must be 2');
  const token = query.get('continuation-token');
  const startAfter = query.get('start-after');
  const asked = queryOf(call, bucket, token ? readToken(token) : startAfter);
  const showsOwner = query.get('fetch-owner') === 'true';
  const page = await livePage(call, bucket, { asked, showsOwner });
  const { nodes, prefixes, next } = page;
  return pageAnswer(call, { bucket, asked, page }, [
    ['Prefix', name(asked.prefix)],
    ['StartAfter', startAfter === undefined ? undefined : name(startAfter)],
    ['ContinuationToken', token],
    ['NextContinuationToken', next === null ? undefined : writeToken(next)],
    ['KeyCount', nodes.length + prefixes.length],
  ]);
}

interface Listed {
  readonly bucket: BucketRow;
  readonly asked: NameQuery;
  readonly page: Awaited<ReturnType<typeof livePage>>;
}

/** `position`: the elements that say where the page is. */
function pageAnswer(
  { what }: S3Call,
  listed: Listed,
  position: readonly (readonly [string, XmlNode])[],
): S3Answer {
  const { bucket, asked, page } = listed;
  const { nodes, prefixes, next } = page;
  const name = namesIn(what);
  return {
    headers: { 'x-amz-bucket-region': bucket.region },
    xml: xmlDocument('ListBucketResult', [
      ['Name', bucket.name],
      ...position,
      ['MaxKeys', asked.limit],
      ['Delimiter', asked.delimiter === '' ? undefined : name(asked.delimiter)],
      ['EncodingType', what.target.query.get('encoding-type')],
      ['IsTruncated', next !== null],
      ...nodes,
      ...prefixNodes(prefixes, name),
    ]),
  };
}

/** The continuation token after a page that ended with this name. */
export function writeToken(name: string): string {
  return Buffer.from(`1${name}`).toString('base64url');
}

/** Throws S3Error InvalidArgument. */
export function readToken(token: string): string {
  const text = Buffer.from(token, 'base64url').toString('utf8');
  if (text.startsWith('1') && writeToken(text.slice(1)) === token) return text.slice(1);
  throw new S3Error('InvalidArgument', 'The continuation token provided is incorrect', {
    fields: { ArgumentName: 'continuation-token' },
  });
}

type OwnerNodes = ReturnType<typeof accountNodes>;

function rowOwner(call: S3Call, { acl }: Pick<EntryRow, 'acl'>): OwnerNodes {
  return accountNodes(accessOf(call).aclOf(acl).owner);
}

/** A page of live objects. All columns of their versions are read only for their owners. */
async function livePage(
  call: S3Call,
  bucket: BucketRow,
  { asked, showsOwner }: { readonly asked: NameQuery; readonly showsOwner: boolean },
) {
  const name = namesIn(call.what);
  const { names } = call.tools.storage;
  const node = (row: ListedRow, owner?: OwnerNodes) =>
    ['Contents', contents(row, name(row.name), owner)] as const;
  if (!showsOwner) {
    const { rows, ...rest } = await names.listed(bucket, asked);
    return { ...rest, nodes: rows.map((row) => node(row)) };
  }
  const { rows, ...rest } = await names.objects(bucket, asked);
  const withChecksum = (row: EntryRow) => ({
    ...row,
    checksum: row.checksum === null ? null : JSON.parse(row.checksum),
  });
  return { ...rest, nodes: rows.map((row) => node(withChecksum(row), rowOwner(call, row))) };
}

function contents(row: ListedRow, key: string, owner: OwnerNodes | undefined): XmlNode {
  return [
    ['Key', key],
    ['LastModified', isoTime(row.created_at)],
    ['ETag', `"${row.etag}"`],
    ['ChecksumAlgorithm', row.checksum?.algorithm],
    ['ChecksumType', row.checksum?.type],
    ['Size', row.size_bytes],
    ['StorageClass', row.storage_class],
    ['Owner', owner],
  ];
}

async function listVersions(call: S3Call): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  const name = namesIn(call.what);
  const { query } = call.what.target;
  const [keyMarker = '', versionMarker = ''] = [query.get('key-marker'), query.get('version-id-marker')];
  if (keyMarker === '' && versionMarker !== '') {
    throw new S3Error('InvalidArgument', 'A version-id marker cannot be specified without a key marker.', {
      fields: { ArgumentName: 'version-id-marker', ArgumentValue: versionMarker },
    });
  }
  if (versionMarker !== '') assertVersionId(versionMarker, 'version-id-marker');
  const asked = queryOf(call, bucket, keyMarker);
  const before = versionMarker === '' ? null : versionMarker;
  const { rows, prefixes, next } = await call.tools.storage.names.versions(bucket, { ...asked, before });
  return {
    xml: xmlDocument('ListVersionsResult', [
      ['Name', bucket.name],
      ['Prefix', name(asked.prefix)],
      ['KeyMarker', name(keyMarker)],
      ['VersionIdMarker', versionMarker],
      ['NextKeyMarker', next === null ? undefined : name(next.name)],
      ['NextVersionIdMarker', next?.versionId ?? undefined],
      ['MaxKeys', asked.limit],
      ['Delimiter', asked.delimiter === '' ? undefined : name(asked.delimiter)],
      ['EncodingType', query.get('encoding-type')],
      ['IsTruncated', next !== null],
      ...rows.map((row) => versionNode(row, name(row.name), rowOwner(call, row))),
      ...prefixNodes(prefixes, name),
    ]),
  };
}

function versionNode(row: EntryRow, key: string, owner: OwnerNodes) {
  const head = [
    ['Key', key],
    ['VersionId', shownId(row)],
    ['IsLatest', row.is_latest === 1],
    ['LastModified', isoTime(row.created_at)],
  ] as const;
  if (row.blob === null) return ['DeleteMarker', [...head, ['Owner', owner]]] as const;
  const bytes = [
    ['ETag', `"${row.etag}"`],
    ['Size', row.size_bytes],
    ['StorageClass', row.storage_class],
    ['Owner', owner],
  ] as const;
  return ['Version', [...head, ...bytes]] as const;
}

async function listUploads(call: S3Call): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  const name = namesIn(call.what);
  const { query } = call.what.target;
  const [keyMarker = '', idMarker = ''] = [query.get('key-marker'), query.get('upload-id-marker')];
  // Without a key it has no effect.
  const afterUpload = keyMarker === '' || idMarker === '' ? null : idMarker;
  if (afterUpload !== null && !isId('upl', afterUpload)) {
    throw new S3Error('InvalidArgument', 'Invalid upload id specified', {
      fields: { ArgumentName: 'upload-id-marker', ArgumentValue: afterUpload },
    });
  }
  const asked = queryOf(call, bucket, keyMarker);
  const { rows, prefixes, next } = await call.tools.storage.names.uploads(bucket, { ...asked, afterUpload });
  return {
    xml: xmlDocument('ListMultipartUploadsResult', [
      ['Bucket', bucket.name],
      ['KeyMarker', name(keyMarker)],
      ['UploadIdMarker', idMarker],
      ['NextKeyMarker', next === null ? undefined : name(next.name)],
      ['NextUploadIdMarker', next?.uploadId ?? undefined],
      ['Prefix', name(asked.prefix)],
      ['Delimiter', asked.delimiter === '' ? undefined : name(asked.delimiter)],
      ['EncodingType', query.get('encoding-type')],
      ['MaxUploads', asked.limit],
      ['IsTruncated', next !== null],
      ...rows.map(
        (row) =>
          [
            'Upload',
            [
              ['Key', name(row.name)],
              ['UploadId', row.upload_id],
              ['Initiator', accountNodes(initiatorOf(call, row))],
              ['Owner', rowOwner(call, row)],
              ['StorageClass', 'STANDARD'],
              ['Initiated', isoTime(row.created_at)],
            ],
          ] as const,
      ),
      ...prefixNodes(prefixes, name),
    ]),
  };
}
