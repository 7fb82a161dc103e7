/** Operations on one object: store, read, copy, describe, delete. */
import {
  base64Digest,
  headerChecksums,
  newDigest,
  S3Error,
  xmlDocument,
} from '../../../libs/s3-wire/index.ts';
import type { Filtered } from '../../storage/lifecycle/lifecycle-rules.ts';
import type { Published } from '../../storage/listing/entries.ts';
import type { Content } from '../../storage/objects/downloads.ts';
import type { Naming, VersionContent } from '../../storage/objects/objects.ts';
import { isSameEncryption } from '../../storage/objects/stored-encryption.ts';
import type { Upload } from '../../storage/uploads/upload.ts';
import { openBucket, permittedContent } from '../access/access.ts';
import { newAcl } from '../access/new-acl.ts';
import {
  bucketOf,
  isoTime,
  keyOf,
  type S3Answer,
  type S3Call,
  type S3Operation,
  type S3Request,
} from '../s3-call.ts';
import { askedEncryption, shownEncryption, storedEncryption, unlocked } from './encryption-headers.ts';
import {
  checksumHeaders,
  checksumOf,
  describedBy,
  expirationHeader,
  fullObject,
  isNotModified,
  labelsOf,
  newVersionHeader,
  redirected,
  tagsOf,
  versionHeader,
  wantedLock,
  writeCondition,
} from './object-headers.ts';
import { headObject, readAll, sendObject } from './object-reading.ts';

const OBJECT = { level: 'object' } as const;
const READ = { ...OBJECT, permission: 'storage:read' } as const;
const WRITE = { ...OBJECT, permission: 'storage:append' } as const;

/** Headers that change an object when it is copied to itself. */
const CHANGES = /^x-amz-(?:server-side-encryption|storage-class$|website-redirect-location$)/;

/** Appends to an object in Amazon's directory buckets. */
const OFFSET = 'x-amz-write-offset-bytes';

/** An operation that copies the content of another name. */
export const COPY = { header: 'x-amz-copy-source', sourcePermission: 'storage:read' } as const;

export const OBJECT_OPERATIONS: readonly S3Operation[] = [
  { ...WRITE, name: 'PutObject', action: 's3:PutObject', method: 'PUT', run: putObject },
  { ...WRITE, ...COPY, name: 'CopyObject', action: 's3:PutObject', method: 'PUT', run: copyObject },
  {
    ...READ,
    name: 'GetObject',
    action: 's3:GetObject',
    versionAction: 's3:GetObjectVersion',
    reads: true,
    method: 'GET',
    run: sendObject,
  },
  {
    ...READ,
    name: 'HeadObject',
    action: 's3:GetObject',
    versionAction: 's3:GetObjectVersion',
    reads: true,
    method: 'HEAD',
    run: headObject,
  },
];

export async function putObject(call: S3Call): Promise<S3Answer> {
  const { principal } = call;
  const { headers } = call.what;
  const { storage } = call.tools;
  // To ignore it would replace the object by what was to be added to it.
  if (headers[OFFSET] !== undefined)
    throw new S3Error('NotImplemented', `${OFFSET} is not offered here: objects cannot be appended to`);
  const labels = { ...labelsOf(keyOf(call.what), headers), acl: await newAcl(call) };
  const condition = writeCondition(headers);
  const found = await bucketOf(call);
  const asked = await askedEncryption(call, found);
  const begun = await storage.objects.beginUpload(principal, found.name, asked);
  const { bucket, upload, encryption } = begun;
  try {
    const naming = { ...labels, lock: wantedLock(call, bucket) };
    storage.objects.assertMayWrite(principal, bucket, naming.name);
    const { received, sent } = await call.what.body.into(upload, 'CRC64NVME');
    const checksum = sent === null ? null : fullObject(sent);
    const content = storage.objects.received(received, checksum);
    const published = await storage.objects.publish(
      call,
      { bucket, content, naming, ...(condition && { condition }) },
      (version) => version,
    );
    return {
      headers: {
        etag: `"${published.etag}"`,
        ...checksumHeaders(checksum),
        ...newVersionHeader(bucket, published.versionId),
        ...shownEncryption(call, encryption),
        ...expirationHeader(bucket, expiringOf(published, naming)),
      },
    };
  } finally {
    await upload.end();
  }
}

/** A new version as lifecycle rules see it. */
function expiringOf({ name, sizeBytes, createdAt }: Published, { tags = null }: Naming): Filtered {
  return { name, size_bytes: sizeBytes, created_at: createdAt, tags };
}

/**
 * The source in `x-amz-copy-source`. Throws S3Error InvalidArgument, NoSuchKey, PreconditionFailed.
 */
export async function copySource(
  call: S3Call,
): Promise<{ content: Content; versionHeaders: Record<string, string> }> {
  const { headers } = call.what;
  const [path = '', query = ''] = String(headers['x-amz-copy-source']).split('?', 2);
  const refused = () =>
    new S3Error(
      'InvalidArgument',
      'Copy Source must mention the source bucket and key: sourcebucket/sourcekey',
    );
  let named: string;
  try {
    named = decodeURIComponent(path).replace(/^\//, '');
  } catch {
    throw refused();
  }
  const slash = named.indexOf('/');
  if (slash < 1 || slash === named.length - 1) throw refused();
  const expected = headers['x-amz-source-expected-bucket-owner'];
  const access = await openBucket(
    { storage: call.tools.storage, facts: call.who.facts },
    named.slice(0, slash),
    expected,
  );
  const { bucket } = access;
  const versionId = /^versionId=(.*)$/.exec(query)?.[1];
  const found = await permittedContent(call, access, {
    action: versionId === undefined ? 's3:GetObject' : 's3:GetObjectVersion',
    permission: COPY.sourcePermission,
    key: named.slice(slash + 1),
    versionId,
  }).catch((error) => {
    if (!(error instanceof S3Error && error.code === 'MethodNotAllowed')) throw error;
    const message =
      'The source of a copy request may not specifically refer to a delete marker by version id.';
    throw new S3Error('InvalidRequest', message);
  });
  const content = unlocked(call, found, 'copy-source-');
  if (isNotModified(headers, content, 'x-amz-copy-source-')) throw new S3Error('PreconditionFailed');
  call.tools.storage.downloads.logRead(content, call);
  const shown = versionHeader(bucket, content.row)['x-amz-version-id'];
  return { content, versionHeaders: shown === undefined ? {} : { 'x-amz-copy-source-version-id': shown } };
}

async function copyObject(call: S3Call): Promise<S3Answer> {
  const { principal } = call;
  const { headers } = call.what;
  const { storage } = call.tools;
  await call.what.body.whole(0);
  const bucket = await bucketOf(call);
  const { content, versionHeaders } = await copySource(call);
  const { row } = content;
  const name = keyOf(call.what);
  const replaces = directive(call.what, 'x-amz-metadata-directive');
  const isItself =
    row.bucket_id === bucket.id &&
    row.name === name &&
    headers['x-amz-copy-source']?.includes('?versionId=') !== true;
  if (isItself && !replaces && !Object.keys(headers).some((each) => CHANGES.test(each))) {
    throw new S3Error(
      'InvalidRequest',
      'This copy request is illegal because it is trying to copy an object to itself without changing the ' +
        "object's metadata, storage class, website redirect location or encryption attributes.",
    );
  }
  const kept = { mimeType: row.mime_type, metadata: row.metadata, headers: redirected(row.headers, headers) };
  const tags = directive(call.what, 'x-amz-tagging-directive') ? tagsOf(headers) : row.tags;
  const labels = { name, ...(replaces ? describedBy(headers) : kept), tags };
  const naming = { ...labels, acl: await newAcl(call), lock: wantedLock(call, bucket) };
  const condition = writeCondition(headers);
  storage.objects.assertMayWrite(principal, bucket, name);
  const asked = await askedEncryption(call, bucket);
  const { upload, encryption } = await storage.objects.beginUpload(principal, bucket.name, asked);
  try {
    const stored = await storedEncryption(call, content);
    const copied = await copiedContent(call, content, {
      upload,
      isSame: isSameEncryption(stored, encryption, content.row),
    });
    const published = await storage.objects.publish(
      call,
      { bucket, naming, content: copied, ...(condition && { condition }) },
      (version) => version,
    );
    const sum = checksumOf({ checksum: copied.checksum ?? null });
    return {
      headers: {
        ...versionHeaders,
        ...newVersionHeader(bucket, published.versionId),
        ...shownEncryption(call, encryption),
        ...expirationHeader(bucket, expiringOf(published, naming)),
      },
      xml: xmlDocument('CopyObjectResult', [
        ['ETag', `"${published.etag}"`],
        ['LastModified', isoTime(published.createdAt)],
        [`Checksum${sum?.algorithm}`, sum?.value],
        ['ChecksumType', sum?.type],
      ]),
    };
  } finally {
    await upload.end();
  }
}

/**
 * The bytes of a copy: those of the source, shared if encrypted alike. They are read only if a
 * requested checksum is not known yet.
 */
async function copiedContent(
  call: S3Call,
  content: Content,
  { upload, isSame }: { upload: Upload; isSame: boolean },
): Promise<VersionContent> {
  const { objects } = call.tools.storage;
  const { row } = content;
  const { algorithm } = headerChecksums(call.what.headers);
  const known = checksumOf(row);
  const isKnown = algorithm === null || (known?.algorithm === algorithm && known.type === 'FULL_OBJECT');
  const shares = isSame && row.blob !== null ? { ...row, blob: row.blob } : null;
  if (isKnown && shares !== null) return objects.shared(shares);
  if (isKnown) return objects.received(await readAll(call, content, upload), row.checksum);
  const summed = (value: string) => fullObject({ algorithm, value });
  if (shares === null) {
    upload.digest([algorithm]);
    const received = await readAll(call, content, upload);
    return objects.received(received, summed(base64Digest(received.digests, algorithm)));
  }
  const digest = newDigest(algorithm);
  const write = (chunk: Uint8Array) => {
    digest.update(chunk);
    return undefined;
  };
  await readAll(call, content, { write, finish: () => upload.finish() });
  return objects.shared({ ...shares, checksum: summed(digest.digest().toString('base64')) });
}

function directive({ headers }: S3Request, name: string): boolean {
  const value = headers[name];
  if (value === undefined || value === 'COPY') return false;
  if (value === 'REPLACE') return true;
  throw new S3Error('InvalidArgument', `Unknown ${name}`, {
    fields: { ArgumentName: name, ArgumentValue: String(value) },
  });
}
