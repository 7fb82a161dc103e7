/** Facts about a bucket for `cloudlet doctor`. */
import { readXml, textOf } from '../../../libs/s3-wire/index.ts';
import type { S3Address } from '../../config/s3-address.ts';
import type { Clock } from '../../platform/clock.ts';
import { S3Counters } from '../s3-client/s3-counters.ts';
import { isS3Fault } from '../s3-client/s3-fault.ts';
import { S3Objects } from '../s3-client/s3-objects.ts';
import { S3Requests } from '../s3-client/s3-requests.ts';
import { readMark, tryOut } from './ownership.ts';
import { BLOBS } from './sealed-blob.ts';

export interface BucketFacts {
  /** Owner of the objects, `cld-…`; undefined: none yet. */
  readonly cloudId: string | undefined;
  /** Whether old versions are kept; null: the key lacks the permission to read this. */
  readonly isVersioned: boolean | null;
  /** S3's clock minus this host's, in whole seconds, ms; null: unknown. */
  readonly clockAheadMs: number | null;
}

const LIMITS = { tries: 2, silenceMs: 5000 };

/**
 * Lists, stores, reads and removes an object as a cloud does. Rejects with a BlobFault of kind
 * `s3`.
 */
export async function bucketFacts(address: S3Address, clock: Clock): Promise<BucketFacts> {
  const requests = new S3Requests({ address, clock, counters: new S3Counters() });
  try {
    const objects = new S3Objects(requests, address.prefix);
    const query = { 'list-type': '2', 'max-keys': '1', prefix: `${address.prefix}${BLOBS}` };
    const answer = await requests.send({ method: 'GET', key: '', query }, LIMITS);
    const at = Date.parse(answer.headers.date ?? '');
    const clockAheadMs = Number.isNaN(at) ? null : at - Math.floor(clock.now() / 1000) * 1000;
    answer.resume();
    const cloudId = await readMark(objects, LIMITS);
    await tryOut(objects, LIMITS);
    return { cloudId, clockAheadMs, isVersioned: await asksVersioning(requests) };
  } finally {
    requests.close();
  }
}

async function asksVersioning(requests: S3Requests): Promise<boolean | null> {
  try {
    const answer = await requests.sendForText({ method: 'GET', key: '', query: { versioning: '' } }, LIMITS);
    return textOf(readXml(answer), 'Status') === 'Enabled';
  } catch (error) {
    if (isS3Fault(error)) return null;
    throw error;
  }
}
