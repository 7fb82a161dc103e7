/** Tests everything that recovery points need from a bucket. */

import { createHash } from 'node:crypto';
import { child, readXml, textOf, type XmlElement } from '../../../libs/s3-wire/index.ts';
import type { Clock } from '../../platform/clock.ts';
import { randomName } from '../../platform/ids.ts';
import type { Removal } from '../../recovery/repository/target.ts';
import { isS3Fault, s3Fault } from '../s3-client/s3-fault.ts';
import { bodyOf, type S3Objects, type S3Retention } from '../s3-client/s3-objects.ts';
import type { S3Limits, S3Requests } from '../s3-client/s3-requests.ts';

export interface BucketLock {
  readonly mode: S3Retention['mode'];
  /** For each new point. */
  readonly days: number;
}

export interface BucketProof {
  readonly removal: Removal;
  /** null: points are not locked. */
  readonly lock: BucketLock | null;
  /** Clock of S3 minus this host's, in whole seconds, ms; null: unknown. */
  readonly clockAheadMs: number | null;
}

export interface BucketProofDeps {
  readonly requests: S3Requests;
  readonly objects: S3Objects;
  /** The key prefix of the repository, empty or with a slash at its end. */
  readonly prefix: string;
  /** Whether an object of that key and MD5, in hex, belongs to this cloud. */
  readonly isOwn: (key: string, md5: string) => Promise<boolean>;
  readonly limits: S3Limits;
  readonly clock: Clock;
  /** Days for which a point is locked; 0: as the bucket's default says. */
  readonly lockDays: number;
}

/** Prefix of the test object's name. A key that may not remove objects leaves it behind. */
const PROBE = 'cloudlet-probe-';

interface Trial extends BucketProofDeps {
  /** The key of this test's own object. */
  readonly key: string;
}

/** Leaves the bucket unchanged, except that object. Rejects with a BlobFault of kind `s3`. */
export async function proveBucket(deps: BucketProofDeps): Promise<BucketProof> {
  const trial = { ...deps, key: `${PROBE}${randomName(12)}` };
  await proveCreation(trial);
  await proveReplacement(trial);
  await proveChecksum(trial);
  const lock = await readLock(trial);
  return { removal: await tryRemoval(trial), clockAheadMs: await clockAhead(trial), lock };
}

/** The lease of a repository depends on it. */
async function proveCreation({ objects, key, limits }: Trial): Promise<void> {
  await objects.put(key, bodyOf(Buffer.from(randomName(64))), limits);
  try {
    await objects.put(key, bodyOf(Buffer.from(randomName(64))), limits);
  } catch (error) {
    if (isS3Fault(error, 'exists')) return;
    throw error;
  }
  throw s3Fault(
    'refused',
    'the S3 service ignores If-None-Match, so two clouds could write to one repository at once',
  );
}

async function proveReplacement({ objects, key, prefix, isOwn, limits }: Trial): Promise<void> {
  const content = Buffer.from(randomName(64));
  try {
    await objects.replace(key, bodyOf(content), limits);
  } catch (error) {
    if (!isS3Fault(error, 'denied')) throw error;
    const fix = 'if the key may only append, enable versioning of the bucket';
    throw s3Fault('denied', `the key may not replace objects: ${fix}`);
  }
  const found = await objects.whole(key, 2 ** 20, limits);
  if (found?.equals(content) !== true)
    throw s3Fault('refused', 'the S3 service returned different bytes than were stored');
  if (await isOwn(`${prefix}${key}`, createHash('md5').update(content).digest('hex'))) {
    throw s3Fault('foreign', 'the bucket belongs to this cloud, and would be lost with it');
  }
}

/** Without it, bytes that are altered on their way would be stored, and found by a restore. */
async function proveChecksum({ objects, key, limits }: Trial): Promise<void> {
  const { md5 } = bodyOf(Buffer.from(randomName(64)));
  try {
    await objects.replace(key, { parts: [Buffer.from(randomName(64))], md5 }, { ...limits, tries: 1 });
  } catch (error) {
    if (isS3Fault(error, 'digest')) return;
    throw error;
  }
  throw s3Fault('refused', 'the S3 service ignores Content-MD5, so bytes could be altered in transit');
}

async function tryRemoval({ requests, key, limits }: Trial): Promise<Removal> {
  try {
    const answer = await requests.send({ method: 'DELETE', key }, limits);
    answer.resume();
    return answer.headers['x-amz-delete-marker'] === 'true' ? 'hidden' : 'gone';
  } catch (error) {
    if (isS3Fault(error, 'denied')) return 'denied';
    throw error;
  }
}

async function clockAhead({ requests, prefix, clock, limits }: Trial): Promise<number | null> {
  const query = { 'list-type': '2', 'max-keys': '1', prefix };
  const answer = await requests.send({ method: 'GET', key: '', query }, limits);
  answer.resume();
  const at = Date.parse(answer.headers.date ?? '');
  return Number.isNaN(at) ? null : at - Math.floor(clock.now() / 1000) * 1000;
}

/** The lock of new points: the configured days, else the bucket's default. */
async function readLock({ requests, limits, lockDays }: Trial): Promise<BucketLock | null> {
  let root: XmlElement;
  try {
    const query = { 'object-lock': '' };
    root = readXml(await requests.sendForText({ method: 'GET', key: '', query }, limits));
  } catch (error) {
    if (isS3Fault(error) && !isS3Fault(error, 'missing', 'refused', 'denied')) throw error;
    if (lockDays === 0) return null;
    const { message } = error as Error;
    throw s3Fault('refused', `CLOUDLET_RECOVERY_LOCK_DAYS needs object lock in the bucket: ${message}`);
  }
  const rules = child(root, 'Rule');
  const rule = rules && child(rules, 'DefaultRetention');
  const mode = rule && textOf(rule, 'Mode') === 'COMPLIANCE' ? 'COMPLIANCE' : 'GOVERNANCE';
  const figure = (name: string) => Number((rule && textOf(rule, name)) ?? 0);
  const own = figure('Days') + 365 * figure('Years');
  const days = lockDays || own;
  return days > 0 ? { mode, days } : null;
}
