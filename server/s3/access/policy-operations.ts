/** Bucket policies, and the public status of a bucket. */

import { S3Error, xmlDocument } from '../../../libs/s3-wire/index.ts';
import type { AccountDirectory } from '../../accounts/directory.ts';
import { type BucketPolicy, type PublicAccess, settingsOf } from '../../storage/buckets/bucket-settings.ts';
import { accessOf, type S3Answer, type S3Call, type S3Operation } from '../s3-call.ts';
import { bucketAcl } from './acl-operations.ts';
import { PolicyProblem } from './conditions.ts';
import { isPublicGrant } from './grants.ts';
import {
  assertApplicable,
  compilePolicy,
  isPublic,
  POLICY_MAX_BYTES,
  type PolicyDraft,
  policyOf,
  readPolicy,
} from './policy.ts';

/** Longer policies are refused with their own code. */
const BODY_MAX_BYTES = 256 * 1024;
const BUCKET = { level: 'bucket', query: ['policy'] } as const;
/** Principals in the form of AWS: an account by its canonical id or number, or its only user. */
const ARN = /^arn:aws:iam::([^:]*):(root|user\/(.+))$/;

export const POLICY_OPERATIONS: readonly S3Operation[] = [
  {
    ...BUCKET,
    name: 'GetBucketPolicy',
    action: 's3:GetBucketPolicy',
    method: 'GET',
    permission: 'storage:read',
    run: getPolicy,
  },
  {
    ...BUCKET,
    name: 'PutBucketPolicy',
    action: 's3:PutBucketPolicy',
    method: 'PUT',
    permission: 'storage:admin',
    run: putPolicy,
  },
  {
    ...BUCKET,
    name: 'DeleteBucketPolicy',
    action: 's3:DeleteBucketPolicy',
    method: 'DELETE',
    permission: 'storage:admin',
    run: deletePolicy,
  },
  {
    name: 'GetBucketPolicyStatus',
    action: 's3:GetBucketPolicyStatus',
    method: 'GET',
    level: 'bucket',
    query: ['policyStatus'],
    permission: 'storage:read',
    run: getStatus,
  },
];

/** Only the owner may access policies, whatever they allow. Throws S3Error MethodNotAllowed. */
function ownBucket(call: S3Call) {
  const access = accessOf(call);
  if (!access.isOwner) throw new S3Error('MethodNotAllowed');
  return access.bucket;
}

function getPolicy(call: S3Call): S3Answer {
  const { policy } = settingsOf(ownBucket(call));
  if (policy === undefined) throw new S3Error('NoSuchBucketPolicy');
  return { json: policy.text };
}

async function putPolicy(call: S3Call): Promise<S3Answer> {
  const { name } = ownBucket(call);
  const body = await call.what.body.whole(BODY_MAX_BYTES);
  if (body.length === 0) throw new S3Error('MissingRequestBodyError');
  const read = await newPolicy(call.tools.accounts, name, new TextDecoder().decode(body));
  const holdsForOwner = call.what.headers['x-amz-confirm-remove-self-bucket-access'] === 'true';
  const stored: BucketPolicy = { ...read, ...(holdsForOwner && { holdsForOwner }) };
  await call.tools.storage.buckets.configure(call, name, ['policy', stored], ({ publicAccess }) =>
    assertNotBlocked(stored, name, publicAccess),
  );
  return { status: 204 };
}

/** Throws S3Error AccessDenied for a public policy if those are blocked. */
export function assertNotBlocked(
  policy: BucketPolicy,
  bucket: string,
  publicAccess: PublicAccess | undefined,
): void {
  if (publicAccess?.blockPolicy !== true || !isPublic(policyOf(policy, bucket))) return;
  throw new S3Error('AccessDenied', 'Public policies are blocked by the bucket');
}

/** Reads a policy of a bucket. Throws S3Error MalformedPolicy. */
export async function newPolicy(
  accounts: AccountDirectory,
  bucket: string,
  text: string,
): Promise<BucketPolicy> {
  if (Buffer.byteLength(text) > POLICY_MAX_BYTES) {
    throw new S3Error('MalformedPolicy', `Policies can have at most ${POLICY_MAX_BYTES} bytes`);
  }
  const draft = understood(() => readPolicy(text));
  const principals = await principalsOf(accounts, draft);
  understood(() => {
    compilePolicy(draft, bucket, principals);
    assertApplicable(draft);
  });
  return { text, principals };
}

/** Throws S3Error MalformedPolicy with the parser's message. */
function understood<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof PolicyProblem) throw new S3Error('MalformedPolicy', error.message);
    throw error;
  }
}

/** Canonical ids by the names in the policy; unknown names are omitted, and refused later. */
async function principalsOf(
  directory: AccountDirectory,
  { accounts }: PolicyDraft,
): Promise<Record<string, string>> {
  const found: Record<string, string> = Object.create(null);
  for (const name of accounts) {
    const [, account = name, , user] = ARN.exec(name) ?? [];
    const named =
      account === '' ? await anyAccount(directory, user ?? '') : await accountOf(directory, account);
    if (named === undefined) continue;
    const isUser = user === undefined || user === named.canonicalId || user === named.username;
    if (isUser) found[name] = named.canonicalId;
  }
  return { ...found };
}

/** By canonical id or number. */
async function accountOf(accounts: AccountDirectory, name: string) {
  if (/^[0-9a-f]{64}$/.test(name)) return accounts.byCanonicalId(name);
  return /^\d{1,15}$/.test(name) ? accounts.byId(Number(name)) : undefined;
}

async function anyAccount(accounts: AccountDirectory, user: string) {
  return (await accountOf(accounts, user)) ?? (await accounts.byUsername(user));
}

async function deletePolicy(call: S3Call): Promise<S3Answer> {
  await call.tools.storage.buckets.configure(call, ownBucket(call).name, ['policy', undefined]);
  return { status: 204 };
}

function getStatus(call: S3Call): S3Answer {
  const { bucket } = accessOf(call);
  const { policy } = settingsOf(bucket);
  const byPolicy = policy !== undefined && isPublic(policyOf(policy, bucket.name));
  const byList = bucketAcl(call).grants.some(isPublicGrant);
  return { xml: xmlDocument('PolicyStatus', [['IsPublic', byPolicy || byList]]) };
}
