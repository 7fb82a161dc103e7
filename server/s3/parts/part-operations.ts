/** Operations of multipart uploads. */

import {
  base64Digest,
  checksumHeader,
  children,
  headerChecksums,
  parseXml,
  S3Error,
  xmlDocument,
} from '../../../libs/s3-wire/index.ts';
import type { BucketRow } from '../../storage/buckets/buckets.ts';
import { MAX_PARTS } from '../../storage/uploads/part-uploads.ts';
import { newAcl } from '../access/new-acl.ts';
import { namesIn } from '../buckets/list-operations.ts';
import {
  askedEncryption,
  customerKeyOf,
  partEncryption,
  partKey,
  shownEncryption,
} from '../objects/encryption-headers.ts';
import {
  abortHeaders,
  expirationHeader,
  labelsOf,
  newVersionHeader,
  wantedLock,
  writeCondition,
} from '../objects/object-headers.ts';
import { COPY, copySource } from '../objects/object-operations.ts';
import { readRange } from '../objects/object-reading.ts';
import {
  accessOf,
  accountNodes,
  bucketOf,
  isoTime,
  keyOf,
  numberOf,
  type S3Answer,
  type S3Call,
  type S3Operation,
  type S3Request,
} from '../s3-call.ts';
import { assertInitiator, begunBy, initiatorOf } from '../sign/initiator.ts';
import {
  type Announced,
  announcedOf,
  assertAnnounced,
  assertSize,
  chosenOf,
  claimOf,
  wholeChecksum,
} from './part-completion.ts';

const OBJECT = { level: 'object' } as const;
const WRITE = { ...OBJECT, permission: 'storage:append' } as const;
const COMPLETE_MAX_BYTES = 4 * 2 ** 20;
const PARTS_SHOWN = 1000;

export const PART_OPERATIONS: readonly S3Operation[] = [
  {
    ...WRITE,
    name: 'CreateMultipartUpload',
    action: 's3:PutObject',
    method: 'POST',
    query: ['uploads'],
    run: create,
  },
  {
    ...WRITE,
    name: 'UploadPart',
    action: 's3:PutObject',
    method: 'PUT',
    query: ['partNumber', 'uploadId'],
    run: uploadPart,
  },
  {
    ...WRITE,
    ...COPY,
    name: 'UploadPartCopy',
    action: 's3:PutObject',
    method: 'PUT',
    query: ['partNumber', 'uploadId'],
    run: copyPart,
  },
  {
    ...WRITE,
    name: 'CompleteMultipartUpload',
    action: 's3:PutObject',
    method: 'POST',
    query: ['uploadId'],
    run: complete,
  },
  {
    ...WRITE,
    name: 'AbortMultipartUpload',
    action: 's3:AbortMultipartUpload',
    byInitiator: true,
    method: 'DELETE',
    query: ['uploadId'],
    run: abort,
  },
  {
    ...OBJECT,
    name: 'ListParts',
    action: 's3:ListMultipartUploadParts',
    byInitiator: true,
    method: 'GET',
    query: ['uploadId'],
    permission: 'storage:read',
    run: listParts,
  },
];

async function create(call: S3Call): Promise<S3Answer> {
  await call.what.body.whole(0);
  const bucket = await bucketOf(call);
  const name = keyOf(call.what);
  const labels = labelsOf(name, call.what.headers);
  const { algorithm, type } = headerChecksums(call.what.headers);
  if (algorithm === null && type !== null) {
    throw new S3Error(
      'InvalidRequest',
      'The x-amz-checksum-type header can only be used with the x-amz-checksum-algorithm header.',
    );
  }
  const chosen = algorithm ?? 'CRC64NVME';
  const usual = chosen === 'CRC64NVME' ? 'FULL_OBJECT' : 'COMPOSITE';
  const announced: Announced = { algorithm: chosen, type: type ?? usual, isAsked: algorithm !== null };
  const asked = await askedEncryption(call, bucket);
  const encryption = asked ?? (await call.tools.storage.objects.encryptionOf(bucket));
  const uploadId = await call.tools.storage.partUploads.begin(call, bucket, {
    ...labels,
    lock: wantedLock(call, bucket),
    acl: begunBy(call.who, await newAcl(call), accessOf(call).owner),
    checksum: JSON.stringify(announced),
    encryption,
  });
  return {
    headers: {
      ...abortHeaders(bucket, { name, created_at: call.tools.now() }),
      ...(algorithm !== null && {
        'x-amz-checksum-algorithm': algorithm,
        'x-amz-checksum-type': announced.type,
      }),
      ...shownEncryption(call, encryption),
    },
    xml: xmlDocument('InitiateMultipartUploadResult', [
      ['Bucket', bucket.name],
      ['Key', name],
      ['UploadId', uploadId],
    ]),
  };
}

function namedUpload(call: S3Call) {
  return { name: keyOf(call.what), uploadId: call.what.target.query.get('uploadId') ?? '' };
}

function partNumberOf({ target }: S3Request): number {
  const text = target.query.get('partNumber') ?? '';
  const number = Number(text);
  if (/^\d{1,5}$/.test(text) && number >= 1 && number <= MAX_PARTS) return number;
  throw new S3Error(
    'InvalidArgument',
    `Part number must be an integer between 1 and ${MAX_PARTS}, inclusive`,
    {
      fields: { ArgumentName: 'partNumber', ArgumentValue: text },
    },
  );
}

async function uploadPart(call: S3Call): Promise<S3Answer> {
  const { storage } = call.tools;
  const number = partNumberOf(call.what);
  const bucket = await bucketOf(call);
  const row = await storage.partUploads.find(bucket, namedUpload(call));
  assertInitiator(call, row);
  const announced = announcedOf(row);
  const { algorithm } = announced;
  assertAnnounced(announced, headerChecksums(call.what.headers).algorithm);
  storage.objects.assertMayWrite(call.principal, bucket, row.name);
  const key = partKey(call, row);
  const upload = await storage.partUploads.receive(row, key);
  try {
    const { received, sent } = await call.what.body.into(upload, algorithm);
    const checksum = sent !== null && sent.algorithm === algorithm ? sent.value : null;
    await storage.partUploads.putPart(call, row, { number, received, checksum });
    const shown = sent === null ? {} : { [checksumHeader(sent.algorithm)]: sent.value };
    const encryption = await partEncryption(call, row, key);
    return { headers: { etag: `"${received.etag}"`, ...shown, ...encryption } };
  } finally {
    await upload.end();
  }
}

async function copyPart(call: S3Call): Promise<S3Answer> {
  const { storage } = call.tools;
  await call.what.body.whole(0);
  const number = partNumberOf(call.what);
  const bucket = await bucketOf(call);
  const row = await storage.partUploads.find(bucket, namedUpload(call));
  assertInitiator(call, row);
  storage.objects.assertMayWrite(call.principal, bucket, row.name);
  const { content, versionHeaders } = await copySource(call);
  const range = copyRange(call.what.headers['x-amz-copy-source-range'], content.sizeBytes);
  const { algorithm, isAsked } = announcedOf(row);
  const key = partKey(call, row);
  const upload = await storage.partUploads.receive(row, key);
  try {
    upload.digest([algorithm]);
    const received = await readRange(call, content, { upload, range });
    const checksum = base64Digest(received.digests, algorithm);
    await storage.partUploads.putPart(call, row, { number, received, checksum });
    return {
      headers: { ...versionHeaders, ...(await partEncryption(call, row, key)) },
      xml: xmlDocument('CopyPartResult', [
        ['ETag', `"${received.etag}"`],
        ['LastModified', isoTime(call.tools.now())],
        [`Checksum${algorithm}`, isAsked ? checksum : undefined],
      ]),
    };
  } finally {
    await upload.end();
  }
}

function copyRange(header: unknown, sizeBytes: number): { start: number; end: number } {
  if (header === undefined) return { start: 0, end: sizeBytes };
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(String(header)) ?? [];
  if (first === undefined || last === undefined || Number(last) < Number(first)) {
    throw new S3Error(
      'InvalidArgument',
      'The x-amz-copy-source-range value must be of the form bytes=first-last',
    );
  }
  if (Number(last) < sizeBytes) return { start: Number(first), end: Number(last) + 1 };
  throw new S3Error('InvalidRange', `Range specified is not valid for source object of size: ${sizeBytes}`);
}

async function complete(call: S3Call): Promise<S3Answer> {
  const { headers } = call.what;
  const { storage } = call.tools;
  // The checksum in the headers is the object's, not the body's.
  const body = await call.what.body.whole(COMPLETE_MAX_BYTES, false);
  if (body.length === 0) throw new S3Error('MalformedXML');
  const root = parseXml(body, COMPLETE_MAX_BYTES);
  const wanted = children(root, 'Part');
  if (root.name !== 'CompleteMultipartUpload' || wanted.length === 0 || wanted.length > MAX_PARTS) {
    throw new S3Error('MalformedXML');
  }
  const bucket = await bucketOf(call);
  const named = namedUpload(call);
  const row = await storage.partUploads.lookUp(named.uploadId);
  if (row?.bucket_id === bucket.id) assertInitiator(call, row);
  const announced = row === undefined ? undefined : announcedOf(row);
  // Amazon requires the key if a checksum of the plaintext is computed.
  const isKeyNeeded = announced?.isAsked === true || customerKeyOf(call) !== undefined;
  const key = row && isKeyNeeded ? partKey(call, row) : undefined;
  const claimed = claimOf(call.what, announced);
  const condition = writeCondition(headers);
  const done = await storage.partUploads.complete(call, named, {
    bucket,
    choose: (parts) => {
      const chosen = chosenOf(wanted, parts, announced);
      assertSize(chosen, headers['x-amz-mp-object-size']);
      return chosen;
    },
    checksumOf: (parts) => wholeChecksum(parts, announced, claimed),
    ...(condition && { condition }),
  });
  const checksum =
    done.checksum === null
      ? null
      : (JSON.parse(done.checksum) as { algorithm: string; type: string; value: string });
  return {
    headers: {
      ...newVersionHeader(bucket, done.version_id),
      ...(row && (await partEncryption(call, row, key))),
      ...(row && expirationHeader(bucket, { ...row, created_at: call.tools.now() })),
    },
    xml: xmlDocument('CompleteMultipartUploadResult', [
      ['Location', `${call.tools.origin}/${bucket.name}/${named.name}`],
      ['Bucket', bucket.name],
      ['Key', named.name],
      ['ETag', `"${done.etag}"`],
      [`Checksum${checksum?.algorithm}`, checksum?.value],
      ['ChecksumType', checksum?.type],
    ]),
  };
}

/**
 * The upload of the request, for its initiator or a caller with this permission on uploads. Throws S3Error
 * AccessDenied.
 */
async function begunUpload(
  call: S3Call,
  bucket: BucketRow,
  asked: Pick<S3Operation, 'action' | 'permission'>,
) {
  const row = await call.tools.storage.partUploads.find(bucket, namedUpload(call)).catch((error) => {
    // Others must not learn which uploads exist.
    accessOf(call).assert({ ...asked, key: keyOf(call.what) });
    throw error;
  });
  assertInitiator(call, row);
  return row;
}

async function abort(call: S3Call): Promise<S3Answer> {
  const bucket = await bucketOf(call);
  await begunUpload(call, bucket, { action: 's3:AbortMultipartUpload', permission: 'storage:append' });
  await call.tools.storage.partUploads.abort(call, bucket, namedUpload(call));
  return { status: 204 };
}

async function listParts(call: S3Call): Promise<S3Answer> {
  const name = namesIn(call.what);
  const bucket = await bucketOf(call);
  const asked = { action: 's3:ListMultipartUploadParts', permission: 'storage:read' } as const;
  const row = await begunUpload(call, bucket, asked);
  call.tools.storage.objects.assertMayWrite(call.principal, bucket, row.name);
  const { algorithm, type, isAsked } = announcedOf(row);
  const limit = numberOf(call, 'max-parts', { max: PARTS_SHOWN, absent: PARTS_SHOWN });
  const after = numberOf(call, 'part-number-marker', { max: MAX_PARTS, absent: 0 });
  const found = await call.tools.storage.partUploads.parts(row.id, after, limit + 1);
  const page = found.slice(0, limit);
  const isTruncated = found.length > limit;
  return {
    headers: abortHeaders(bucket, row),
    xml: xmlDocument('ListPartsResult', [
      ['Bucket', bucket.name],
      ['Key', name(row.name)],
      ['UploadId', row.upload_id],
      ['Initiator', accountNodes(initiatorOf(call, row))],
      ['Owner', accountNodes(accessOf(call).aclOf(row.acl).owner)],
      ['StorageClass', 'STANDARD'],
      ['PartNumberMarker', after],
      ['NextPartNumberMarker', page.at(-1)?.number ?? after],
      ['MaxParts', limit],
      ['IsTruncated', isTruncated],
      ['ChecksumAlgorithm', isAsked ? algorithm : undefined],
      ['ChecksumType', isAsked ? type : undefined],
      ...page.map(
        (part) =>
          [
            'Part',
            [
              ['PartNumber', part.number],
              ['LastModified', isoTime(part.created_at)],
              ['ETag', `"${part.etag}"`],
              ['Size', part.size_bytes],
              [`Checksum${algorithm}`, isAsked ? (part.checksum ?? undefined) : undefined],
            ],
          ] as const,
      ),
    ]),
  };
}
