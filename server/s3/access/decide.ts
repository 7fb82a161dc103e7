/**
 * One pure function decides about access. In this order: denials of the policy → the public access
 * block → the owner's own keys, within their scopes and limits → permissions of the policy or an
 * ACL.
 */
import { mayTouch, type Permission, type Principal, permits } from '../../calls/principal.ts';
import type { Grant, GrantPermission, PublicAccess } from '../../storage/buckets/bucket-settings.ts';
import type { Action } from '../s3-call.ts';
import { type ConditionValues, isMet, variablesOf } from './conditions.ts';
import { isGranted } from './grants.ts';
import { type Effort, matches, TooMuchEffort } from './pattern.ts';
import { arnOf, isPublic, type Policy, type Statement } from './policy.ts';

export interface Question {
  readonly action: Action;
  /** The permission that a key needs, in buckets of any account. */
  readonly permission: Permission;
  readonly bucket: string;
  /** undefined: the bucket itself. */
  readonly key: string | undefined;
  /** For lists: the prefix of the listed names. */
  readonly prefix?: string | undefined;
  /** NOBODY: an unsigned request. */
  readonly caller: Principal;
  readonly values: ConditionValues;
  readonly effort: Effort;
}

export interface Rules {
  /** Account id. */
  readonly owner: number;
  readonly policy: Policy | null;
  /** Denials of the policy do not prevent the owner from reading and changing it. */
  readonly ownerMayMend: boolean;
  readonly publicAccess: PublicAccess | undefined;
  /** The bucket's ACL; null: ACLs are disabled. */
  readonly bucketGrants: readonly Grant[] | null;
  /** The object's ACL; null: no object, or ACLs are disabled. */
  readonly objectGrants: readonly Grant[] | null;
}

/** `effort`: the policy takes too long to evaluate. */
export type Reason = 'scope' | 'limits' | 'policy' | 'effort' | 'owner' | 'list' | 'nothing';

export interface Decision {
  readonly isAllowed: boolean;
  /** The rule that allowed or denied it. */
  readonly reason: Reason;
}

const allowed = (reason: Reason): Decision => ({ isAllowed: true, reason });
const denied = (reason: Reason): Decision => ({ isAllowed: false, reason });

const POLICY_ACTIONS: readonly string[] = [
  's3:GetBucketPolicy',
  's3:PutBucketPolicy',
  's3:DeleteBucketPolicy',
];

/** The actions that the ACL of a bucket grants. */
const BY_BUCKET: Readonly<Record<string, GrantPermission>> = {
  's3:ListBucket': 'READ',
  's3:ListBucketVersions': 'READ',
  's3:ListBucketMultipartUploads': 'READ',
  's3:PutObject': 'WRITE',
  's3:DeleteObject': 'WRITE',
  // For uploads begun by the caller: see initiator.ts.
  's3:AbortMultipartUpload': 'WRITE',
  's3:ListMultipartUploadParts': 'WRITE',
  's3:GetBucketAcl': 'READ_ACP',
  's3:PutBucketAcl': 'WRITE_ACP',
};

/** The actions that the ACL of an object grants. */
const BY_OBJECT: Readonly<Record<string, GrantPermission>> = {
  's3:GetObject': 'READ',
  's3:GetObjectVersion': 'READ',
  's3:GetObjectAcl': 'READ_ACP',
  's3:GetObjectVersionAcl': 'READ_ACP',
  's3:PutObjectAcl': 'WRITE_ACP',
  's3:PutObjectVersionAcl': 'WRITE_ACP',
};

export function decide(question: Question, rules: Rules): Decision {
  const { caller, permission, action } = question;
  const isSigned = caller.via !== 'nobody';
  const isOwner = isSigned && caller.accountId === rules.owner;
  // A key's rights never exceed its own scope.
  if (isSigned && !permits(caller, permission)) return denied('scope');
  if (caller.bucketLimits !== null && !(isOwner && isWithinLimits(question))) return denied('limits');
  if (isOwner && rules.ownerMayMend && POLICY_ACTIONS.includes(action)) return allowed('owner');
  const statements = applying(question, rules);
  if (statements === undefined) return denied('effort');
  if (statements.some(({ effect }) => effect === 'Deny')) return denied('policy');
  if (isOwner) return allowed('owner');
  const isKept = rules.publicAccess?.restrict === true && rules.policy !== null && isPublic(rules.policy);
  if (!isKept && statements.some(({ effect }) => effect === 'Allow')) return allowed('policy');
  return isListed(question, rules) ? allowed('list') : denied('nothing');
}

/** Whether a policy denies it, even if another rule allows it. */
export function isDenied(question: Question, rules: Pick<Rules, 'policy'>): boolean {
  return applying(question, rules)?.some(({ effect }) => effect === 'Deny') ?? true;
}

/** The statements that apply; undefined: the policy takes too long to evaluate. */
function applying(question: Question, { policy }: Pick<Rules, 'policy'>): Statement[] | undefined {
  try {
    return policy?.statements.filter((statement) => applies(statement, question)) ?? [];
  } catch (error) {
    if (error instanceof TooMuchEffort) return undefined;
    throw error;
  }
}

function isWithinLimits({ caller, bucket, key, prefix }: Question): boolean {
  if (key !== undefined) return mayTouch(caller, bucket, key);
  if (prefix !== undefined) return mayTouch(caller, bucket, prefix);
  return caller.bucketLimits?.some((limit) => limit.bucket === bucket) === true;
}

function applies(statement: Statement, question: Question): boolean {
  const { caller, action, bucket, key, values, effort } = question;
  const { principals, isNotPrincipal, actions, isNotAction, resources, isNotResource, conditions } =
    statement;
  const isNamed =
    principals === 'everyone' || (caller.canonicalId !== '' && principals.has(caller.canonicalId));
  if (isNamed === isNotPrincipal) return false;
  const asking = { variables: variablesOf(values), effort };
  if (actions.some((pattern) => matches(pattern, action, asking)) === isNotAction) return false;
  const arn = arnOf(bucket, key);
  if (resources.some((pattern) => matches(pattern, arn, asking)) === isNotResource) return false;
  return conditions.every((condition) => isMet(condition, values, effort));
}

function isListed({ caller, action }: Question, rules: Rules): boolean {
  const ignoresPublic = rules.publicAccess?.ignoreAcls === true;
  const id = caller.via === 'nobody' ? null : caller.canonicalId;
  const grantedBy = (grants: readonly Grant[] | null, permission: GrantPermission | undefined) =>
    grants !== null && permission !== undefined && isGranted(grants, id, { permission, ignoresPublic });
  return grantedBy(rules.bucketGrants, BY_BUCKET[action]) || grantedBy(rules.objectGrants, BY_OBJECT[action]);
}
