/** Object lock in S3's XML; object-headers.ts has its headers. */

import {
  child,
  parseXml,
  S3Error,
  textOf,
  type XmlElement,
  xmlDocument,
} from '../../../libs/s3-wire/index.ts';
import { type BucketSettings, settingsOf } from '../../storage/buckets/bucket-settings.ts';
import type { BucketRow } from '../../storage/buckets/buckets.ts';
import type { LockMode, LockRow, Retention } from '../../storage/objects/object-lock.ts';
import { isoTime } from '../s3-call.ts';

type LockConfiguration = NonNullable<BucketSettings['lock']>;

export const LOCK_MAX_BYTES = 64 * 1024;
const MAX_DAYS = 36_500;
const MAX_YEARS = 100;
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)$/;

export function isMode(text: string | undefined): text is LockMode {
  return text === 'GOVERNANCE' || text === 'COMPLIANCE';
}

/** Throws S3Error InvalidRequest for a bucket without object lock. */
export function assertLockable(bucket: BucketRow): void {
  if (settingsOf(bucket).lock !== undefined) return;
  throw new S3Error('InvalidRequest', 'Bucket is missing Object Lock Configuration');
}

/** The end of a retention, ms. Throws S3Error InvalidArgument if it is in the past. */
export function readUntil(text: string, now: number): number {
  const until = ISO_TIME.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(until)) throw invalidLock('The retain until date must be provided in ISO 8601 format');
  if (until <= now) throw invalidLock('The retain until date must be in the future!');
  return until;
}

export function invalidLock(message: string): S3Error {
  return new S3Error('InvalidArgument', message);
}

function rootOf(body: Buffer, name: string): XmlElement {
  const root = parseXml(body, LOCK_MAX_BYTES);
  if (root.name !== name) throw new S3Error('MalformedXML');
  return root;
}

/** null: remove the retention. Throws S3Error MalformedXML, InvalidArgument. */
export function readRetention(body: Buffer, now: number): Retention | null {
  const root = rootOf(body, 'Retention');
  const [mode, until] = [textOf(root, 'Mode'), textOf(root, 'RetainUntilDate')];
  if (mode === undefined && until === undefined) return null;
  if (!isMode(mode) || until === undefined) throw new S3Error('MalformedXML');
  return { mode, until: readUntil(until, now) };
}

export function retentionDocument({ lock_mode, retain_until }: LockRow): string {
  if (lock_mode === null || retain_until === null) throw new S3Error('NoSuchObjectLockConfiguration');
  return xmlDocument('Retention', [
    ['Mode', lock_mode],
    ['RetainUntilDate', isoTime(retain_until)],
  ]);
}

/** Throws S3Error MalformedXML. */
export function readLegalHold(body: Buffer): boolean {
  const status = textOf(rootOf(body, 'LegalHold'), 'Status');
  if (status !== 'ON' && status !== 'OFF') throw new S3Error('MalformedXML');
  return status === 'ON';
}

export function legalHoldDocument({ legal_hold }: LockRow): string {
  if (legal_hold === null) throw new S3Error('NoSuchObjectLockConfiguration');
  return xmlDocument('LegalHold', [['Status', legal_hold === 1 ? 'ON' : 'OFF']]);
}

/** Throws S3Error MalformedXML, InvalidRetentionPeriod. */
export function readLockConfiguration(body: Buffer): LockConfiguration {
  const root = rootOf(body, 'ObjectLockConfiguration');
  if (textOf(root, 'ObjectLockEnabled') !== 'Enabled') throw new S3Error('MalformedXML');
  const rule = child(root, 'Rule');
  if (rule === undefined) return {};
  const wanted = child(rule, 'DefaultRetention');
  if (wanted === undefined) throw new S3Error('MalformedXML');
  const mode = textOf(wanted, 'Mode');
  const [days, years] = [textOf(wanted, 'Days'), textOf(wanted, 'Years')];
  if (!isMode(mode) || (days === undefined) === (years === undefined)) throw new S3Error('MalformedXML');
  if (days !== undefined) return { byDefault: { mode, days: periodOf(days, MAX_DAYS) } };
  return { byDefault: { mode, years: periodOf(years ?? '', MAX_YEARS) } };
}

function periodOf(text: string, max: number): number {
  if (!/^-?\d{1,10}$/.test(text)) throw new S3Error('MalformedXML');
  const value = Number(text);
  if (value >= 1 && value <= max) return value;
  throw new S3Error(
    'InvalidRetentionPeriod',
    `Default retention period must be a positive integer value of at most ${max}`,
  );
}

export function lockConfigurationDocument({ byDefault }: LockConfiguration): string {
  const retention = byDefault && [
    ['Mode', byDefault.mode] as const,
    ['Days', byDefault.days] as const,
    ['Years', byDefault.years] as const,
  ];
  return xmlDocument('ObjectLockConfiguration', [
    ['ObjectLockEnabled', 'Enabled'],
    ['Rule', retention && [['DefaultRetention', retention]]],
  ]);
}
