/** Operations of object lock on a version: retention and legal hold. */

import {
  accessOf,
  bucketOf,
  contentOf,
  keyOf,
  type S3Answer,
  type S3Call,
  type S3Operation,
} from '../s3-call.ts';
import {
  assertLockable,
  LOCK_MAX_BYTES,
  legalHoldDocument,
  readLegalHold,
  readRetention,
  retentionDocument,
} from './lock.ts';
import { versionHeader } from './object-headers.ts';

const RETENTION = { level: 'object', query: ['retention'], reads: true } as const;
const HOLD = { level: 'object', query: ['legal-hold'], reads: true } as const;
const READ = { method: 'GET', permission: 'storage:read' } as const;

/** Without the bypass permission, retention can only be extended, so every uploader may set it. */
export const LOCK_OPERATIONS: readonly S3Operation[] = [
  { ...RETENTION, ...READ, name: 'GetObjectRetention', action: 's3:GetObjectRetention', run: getRetention },
  {
    ...RETENTION,
    name: 'PutObjectRetention',
    action: 's3:PutObjectRetention',
    method: 'PUT',
    permission: 'storage:append',
    run: putRetention,
  },
  { ...HOLD, ...READ, name: 'GetObjectLegalHold', action: 's3:GetObjectLegalHold', run: getLegalHold },
  {
    ...HOLD,
    name: 'PutObjectLegalHold',
    action: 's3:PutObjectLegalHold',
    method: 'PUT',
    permission: 'storage:admin',
    run: putLegalHold,
  },
];

/** True if the caller requests a bypass of GOVERNANCE and may use it. */
export function bypassesGovernance(call: S3Call, key: string): boolean {
  const asked = call.what.headers['x-amz-bypass-governance-retention']?.toString().toLowerCase() === 'true';
  const bypass = { action: 's3:BypassGovernanceRetention', permission: 'storage:admin', key } as const;
  return asked && accessOf(call).allows(bypass);
}

async function versionOf(call: S3Call) {
  const bucket = await bucketOf(call);
  const { row } = contentOf(call);
  assertLockable(bucket);
  return { row, headers: versionHeader(bucket, row) };
}

async function getRetention(call: S3Call): Promise<S3Answer> {
  const { row } = await versionOf(call);
  return { xml: retentionDocument(row) };
}

async function putRetention(call: S3Call): Promise<S3Answer> {
  const body = await call.what.body.whole(LOCK_MAX_BYTES);
  const { row, headers } = await versionOf(call);
  const retention = readRetention(body, call.tools.now());
  await call.tools.storage.objects.setLock(call, row, {
    retention,
    bypass: bypassesGovernance(call, keyOf(call.what)),
  });
  return { headers };
}

async function getLegalHold(call: S3Call): Promise<S3Answer> {
  const { row } = await versionOf(call);
  return { xml: legalHoldDocument(row) };
}

async function putLegalHold(call: S3Call): Promise<S3Answer> {
  const body = await call.what.body.whole(LOCK_MAX_BYTES);
  const { row, headers } = await versionOf(call);
  await call.tools.storage.objects.setLock(call, row, { legalHold: readLegalHold(body) });
  return { headers };
}
