/** Operations of multipart uploads. */
import type { PartRow, PartUploadRow } from '../storage/part-uploads.ts';
import { MAX_PARTS } from '../storage/part-uploads.ts';
import { assertGrantsNothing } from './acl-operations.ts';
import { ownerOf } from './bucket-operations.ts';
import {
  type ChecksumAlgorithm,
  type ChecksumType,
  checksumHeader,
  combineCrc,
  headerChecksums,
  newChecksum,
  readChecksum,
} from './checksums.ts';
import { writeCondition } from './conditions.ts';
import { namesIn } from './list-operations.ts';
import { labelsOf, versionHeader } from './object-headers.ts';
import { assertEncryptionOffered, COPY, copySource } from './object-operations.ts';
import { readRange } from './object-reading.ts';
import {
  bucketOf,
  isoTime,
  keyOf,
  numberOf,
  type S3Answer,
  type S3Call,
  type S3Operation,
} from './s3-call.ts';
import { S3Error } from './s3-error.ts';
import { children, parseXml, textOf, type XmlElement, xmlDocument } from './xml.ts';

const OBJECT = { level: 'object' } as const;
const WRITE = { ...OBJECT, permission: 'storage:append' } as const;
const COMPLETE_MAX_BYTES = 4 * 2 ** 20;
/** The least size of all parts but the last. */
const MIN_PART_BYTES = 5 * 2 ** 20;
const PARTS_SHOWN = 1000;

export const PART_OPERATIONS: readonly S3Operation[] = [
  { ...WRITE, name: 'CreateMultipartUpload', method: 'POST', query: ['uploads'], run: create },
  { ...WRITE, name: 'UploadPart', method: 'PUT', query: ['partNumber', 'uploadId'], run: uploadPart },
  {
    ...WRITE,
    ...COPY,
    name: 'UploadPartCopy',
    method: 'PUT',
    query: ['partNumber', 'uploadId'],
    run: copyPart,
  },
  { ...WRITE, name: 'CompleteMultipartUpload', method: 'POST', query: ['uploadId'], run: complete },
  { ...WRITE, name: 'AbortMultipartUpload', method: 'DELETE', query: ['uploadId'], run: abort },
  {
    ...OBJECT,
    name: 'ListParts',
    method: 'GET',
    query: ['uploadId'],
    permission: 'storage:read',
    run: listParts,
  },
];

/** The checksum that an upload announced. */
interface Announced {
  readonly algorithm: ChecksumAlgorithm;
  readonly type: ChecksumType;
  /** The client named it; else we keep one of our own. */
  readonly isAsked: boolean;
}

function announcedOf({ checksum }: PartUploadRow): Announced {
  return JSON.parse(checksum ?? '{}') as Announced;
}

async function create(call: S3Call): Promise<S3Answer> {
  assertGrantsNothing(call);
  assertEncryptionOffered(call);
  await call.body.whole(0);
  const bucket = await bucketOf(call);
  const name = keyOf(call);
  const labels = labelsOf(name, call.headers);
  const { algorithm, type } = headerChecksums(call.headers);
  const chosen = algorithm ?? 'CRC64NVME';
  const usual = chosen === 'CRC64NVME' ? 'FULL_OBJECT' : 'COMPOSITE';
  const announced: Announced = { algorithm: chosen, type: type ?? usual, isAsked: algorithm !== null };
  const uploadId = await call.storage.partUploads.begin(call, bucket, {
    ...labels,
    checksum: JSON.stringify(announced),
  });
  return {
    headers:
      algorithm === null
        ? {}
        : { 'x-amz-checksum-algorithm': algorithm, 'x-amz-checksum-type': announced.type },
    xml: xmlDocument('InitiateMultipartUploadResult', [
      ['Bucket', bucket.name],
      ['Key', name],
      ['UploadId', uploadId],
    ]),
  };
}

function namedUpload(call: S3Call) {
  return { name: keyOf(call), uploadId: call.target.query.get('uploadId') ?? '' };
}

function partNumberOf({ target }: S3Call): number {
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
  const { storage } = call;
  const number = partNumberOf(call);
  const bucket = await bucketOf(call);
  const row = await storage.partUploads.find(bucket, namedUpload(call));
  const { algorithm, isAsked } = announcedOf(row);
  storage.objects.assertMayWrite(call.principal, bucket, row.name);
  const upload = await storage.partUploads.receive(row);
  try {
    const sent = await call.body.stream((chunk) => upload.write(chunk), algorithm);
    if (sent !== null && isAsked && sent.algorithm !== algorithm) {
      throw new S3Error(
        'InvalidRequest',
        `Checksum Type mismatch occurred, expected checksum Type: ${algorithm.toLowerCase()}, actual checksum Type: ${sent.algorithm.toLowerCase()}`,
      );
    }
    const received = await upload.finish();
    const checksum = sent !== null && sent.algorithm === algorithm ? sent.value : null;
    await storage.partUploads.putPart(call, row, { number, received, checksum });
    const shown = sent === null ? {} : { [checksumHeader(sent.algorithm)]: sent.value };
    return { headers: { etag: `"${received.md5}"`, ...shown } };
  } finally {
    await upload.end();
  }
}

async function copyPart(call: S3Call): Promise<S3Answer> {
  const { storage } = call;
  await call.body.whole(0);
  const number = partNumberOf(call);
  const bucket = await bucketOf(call);
  const row = await storage.partUploads.find(bucket, namedUpload(call));
  storage.objects.assertMayWrite(call.principal, bucket, row.name);
  const { content, versionHeaders } = await copySource(call);
  const range = copyRange(call.headers['x-amz-copy-source-range'], content.sizeBytes);
  const { algorithm } = announcedOf(row);
  const upload = await storage.partUploads.receive(row);
  try {
    const digest = newChecksum(algorithm);
    const hashed = {
      write: (chunk: Uint8Array) => {
        digest.update(chunk);
        return upload.write(chunk);
      },
      finish: () => upload.finish(),
    };
    const received = await readRange(call, content, { upload: hashed, range });
    const checksum = digest.digest().toString('base64');
    await storage.partUploads.putPart(call, row, { number, received, checksum });
    return {
      headers: versionHeaders,
      xml: xmlDocument('CopyPartResult', [
        ['ETag', `"${received.md5}"`],
        ['LastModified', isoTime(call.now())],
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
  const { storage, headers } = call;
  // The checksum in the headers is the object's, not the body's.
  const root = parseXml(await call.body.whole(COMPLETE_MAX_BYTES, false), COMPLETE_MAX_BYTES);
  const wanted = children(root, 'Part');
  if (root.name !== 'CompleteMultipartUpload' || wanted.length === 0 || wanted.length > MAX_PARTS) {
    throw new S3Error('MalformedXML');
  }
  const bucket = await bucketOf(call);
  const named = namedUpload(call);
  const row = await storage.partUploads.lookUp(named.uploadId);
  const announced = row === undefined ? undefined : announcedOf(row);
  const claimed = claimOf(call, announced);
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
  const version = { version_id: done.version_id, is_null: Number(done.is_null) };
  return {
    headers: {
      ...versionHeader(bucket, version),
      ...(bucket.encryption === 1 && { 'x-amz-server-side-encryption': 'AES256' }),
    },
    xml: xmlDocument('CompleteMultipartUploadResult', [
      ['Location', `${call.origin}/${bucket.name}/${named.name}`],
      ['Bucket', bucket.name],
      ['Key', named.name],
      ['ETag', `"${done.etag}"`],
      [`Checksum${checksum?.algorithm}`, checksum?.value],
      ['ChecksumType', checksum?.type],
    ]),
  };
}

/** The checksum that the client says the object has. Throws S3Error InvalidRequest, BadDigest. */
function claimOf({ headers }: S3Call, announced: Announced | undefined): string | null {
  if (announced === undefined) return null;
  const { algorithm, type } = announced;
  const asked = headers['x-amz-checksum-type']?.toString().toUpperCase();
  if (asked !== undefined && asked !== type) {
    throw new S3Error('InvalidRequest', `The upload was created with the checksum type ${type}`);
  }
  const text = headers[checksumHeader(algorithm)];
  if (text === undefined) return null;
  const [digest = ''] = String(text).split('-', 1);
  readChecksum(algorithm, digest);
  return String(text);
}

function assertSize(parts: readonly PartRow[], claimed: unknown): void {
  const sizeBytes = parts.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
  if (claimed === undefined || claimed === String(sizeBytes)) return;
  throw new S3Error(
    'InvalidRequest',
    `The provided 'x-amz-mp-object-size' header does not match what was computed: ${sizeBytes}`,
  );
}

/**
 * The rows of the parts that the client lists. Throws S3Error InvalidPart, InvalidPartOrder, EntityTooSmall.
 */
function chosenOf(
  wanted: readonly XmlElement[],
  parts: readonly PartRow[],
  announced: Announced | undefined,
): PartRow[] {
  const known = new Map(parts.map((part) => [part.number, part]));
  let before = 0;
  const chosen = wanted.map((each) => {
    const number = Number(textOf(each, 'PartNumber') ?? Number.NaN);
    if (!Number.isInteger(number)) throw new S3Error('MalformedXML');
    const etag = (textOf(each, 'ETag') ?? '').trim().replace(/^"(.*)"$/, '$1');
    if (number <= before) throw new S3Error('InvalidPartOrder');
    before = number;
    const part = known.get(number);
    const fields = { PartNumber: String(number), ETag: etag };
    if (part === undefined || part.etag !== etag) throw new S3Error('InvalidPart', undefined, { fields });
    assertPartChecksum(each, part, announced);
    return part;
  });
  const small = chosen.slice(0, -1).find(({ size_bytes }) => size_bytes < MIN_PART_BYTES);
  if (small === undefined) return chosen;
  throw new S3Error('EntityTooSmall', undefined, {
    fields: {
      ProposedSize: String(small.size_bytes),
      MinSizeAllowed: String(MIN_PART_BYTES),
      PartNumber: String(small.number),
      ETag: small.etag,
    },
  });
}

function assertPartChecksum(wanted: XmlElement, part: PartRow, announced: Announced | undefined): void {
  if (announced === undefined) return;
  const { algorithm, type, isAsked } = announced;
  const claimed = textOf(wanted, `Checksum${algorithm}`);
  if (claimed === undefined && isAsked && type === 'COMPOSITE') {
    throw new S3Error(
      'InvalidRequest',
      `The upload was created using a ${algorithm.toLowerCase()} checksum. The complete request must include the checksum for each part. It was missing for part ${part.number} in the request.`,
    );
  }
  if (claimed === undefined || part.checksum === null) return;
  if (readChecksum(algorithm, claimed).toString('base64') !== part.checksum) {
    throw new S3Error('InvalidPart', undefined, {
      fields: { PartNumber: String(part.number), ETag: part.etag },
    });
  }
}

/** The checksum of the whole, as JSON; null: a part has none of the upload's algorithm. */
function wholeChecksum(
  parts: readonly PartRow[],
  announced: Announced | undefined,
  claimed: string | null,
): string | null {
  const values = parts.map(({ checksum }) => checksum);
  if (announced === undefined || values.some((value) => value === null)) return null;
  const { algorithm, type } = announced;
  const digests = values.map((value) => Buffer.from(value ?? '', 'base64'));
  let value: string;
  if (type === 'COMPOSITE') {
    const outer = newChecksum(algorithm);
    for (const digest of digests) outer.update(digest);
    value = `${outer.digest().toString('base64')}-${parts.length}`;
  } else {
    let whole: Buffer = digests[0] ?? Buffer.alloc(0);
    for (const [at, part] of parts.entries()) {
      if (at > 0) whole = combineCrc(algorithm as 'CRC32', whole, digests[at] as Buffer, part.size_bytes);
    }
    value = whole.toString('base64');
  }
  if (claimed !== null && claimed !== value) throw new S3Error('BadDigest');
  return JSON.stringify({ algorithm, type, value });
}

async function abort(call: S3Call): Promise<S3Answer> {
  await call.storage.partUploads.abort(call, await bucketOf(call), namedUpload(call));
  return { status: 204 };
}

async function listParts(call: S3Call): Promise<S3Answer> {
  const name = namesIn(call);
  const bucket = await bucketOf(call);
  const row = await call.storage.partUploads.find(bucket, namedUpload(call));
  call.storage.objects.assertMayWrite(call.principal, bucket, row.name);
  const { algorithm, type, isAsked } = announcedOf(row);
  const limit = numberOf(call, 'max-parts', { max: PARTS_SHOWN, absent: PARTS_SHOWN });
  const after = numberOf(call, 'part-number-marker', { max: MAX_PARTS, absent: 0 });
  const found = await call.storage.partUploads.parts(row.id, after, limit + 1);
  const page = found.slice(0, limit);
  const isTruncated = found.length > limit;
  return {
    xml: xmlDocument('ListPartsResult', [
      ['Bucket', bucket.name],
      ['Key', name(row.name)],
      ['UploadId', row.upload_id],
      ['Initiator', ownerOf(call)],
      ['Owner', ownerOf(call)],
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
