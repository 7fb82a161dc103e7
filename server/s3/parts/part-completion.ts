/** Completing a multipart upload: whether the parts match the client's list, and their checksum. */
import {
  type ChecksumAlgorithm,
  type ChecksumType,
  checksumHeader,
  checksumsIn,
  combineCrc,
  newDigest,
  readChecksum,
  S3Error,
  textOf,
  type XmlElement,
} from '../../../libs/s3-wire/index.ts';
import { MIN_PART_BYTES, type PartRow, type PartUploadRow } from '../../storage/uploads/part-uploads.ts';
import type { S3Request } from '../s3-call.ts';

/** The checksum that an upload announced. */
export interface Announced {
  readonly algorithm: ChecksumAlgorithm;
  readonly type: ChecksumType;
  /** The client named it; otherwise we store our own. */
  readonly isAsked: boolean;
}

export function announcedOf({ checksum }: PartUploadRow): Announced {
  return JSON.parse(checksum ?? '{}') as Announced;
}

/** Throws S3Error InvalidRequest for a part whose checksum does not match the upload's. */
export function assertAnnounced(
  { algorithm, type, isAsked }: Announced,
  sent: ChecksumAlgorithm | null,
): void {
  const isMissing = sent === null && type === 'COMPOSITE';
  if (!isAsked || sent === algorithm || (sent === null && !isMissing)) return;
  const [expected, actual] = [algorithm, sent ?? 'null'].map((name) => name.toLowerCase());
  throw new S3Error(
    'InvalidRequest',
    `Checksum Type mismatch occurred, expected checksum Type: ${expected}, actual checksum Type: ${actual}`,
  );
}

/** The object's checksum according to the client. Throws S3Error InvalidRequest, BadDigest. */
export function claimOf({ headers }: S3Request, announced: Announced | undefined): string | null {
  if (announced === undefined) return null;
  const { algorithm, type } = announced;
  const asked = headers['x-amz-checksum-type']?.toString().toUpperCase();
  if (asked !== undefined && asked !== type) {
    throw new S3Error('InvalidRequest', `The upload was created with the checksum type ${type}`);
  }
  const others = checksumsIn(headers).filter((name) => name !== checksumHeader(algorithm));
  if (announced.isAsked && others.length > 0) {
    throw new S3Error('InvalidRequest', `The upload was created with the checksum algorithm ${algorithm}`);
  }
  const text = headers[checksumHeader(algorithm)];
  if (text === undefined) return null;
  const [digest = ''] = String(text).split('-', 1);
  readChecksum(algorithm, digest);
  return String(text);
}

export function assertSize(parts: readonly PartRow[], claimed: unknown): void {
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
export function chosenOf(
  wanted: readonly XmlElement[],
  parts: readonly PartRow[],
  announced: Announced | undefined,
): PartRow[] {
  const known = new Map(parts.map((part) => [part.number, part]));
  let before = 0;
  const chosen = wanted.map((each) => {
    const number = Number(textOf(each, 'PartNumber') ?? Number.NaN);
    const tag = textOf(each, 'ETag');
    if (!Number.isInteger(number) || tag === undefined) throw new S3Error('MalformedXML');
    if (number < 1) throw new S3Error('InvalidArgument', 'PartNumber must be >= 1');
    const etag = tag.trim().replace(/^"(.*)"$/, '$1');
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

/** The checksum of the whole, as JSON; null: a part lacks the upload's algorithm. */
export function wholeChecksum(
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
    const outer = newDigest(algorithm);
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
