/**
 * Shows the owner of a bucket who may access it: decides for each kind of caller with the function that
 * authorizes requests. A policy's conditions concern requests, so a result that depends on one is
 * "conditional".
 */
import { NOBODY, type Permission, type Principal } from '../../calls/principal.ts';
import { AppError } from '../../platform/errors.ts';
import type {
  AccountName,
  BucketPolicy,
  BucketSettings,
  Grant,
  PublicAccess,
} from '../../storage/buckets/bucket-settings.ts';
import type { Action } from '../s3-call.ts';
import { decide, type Rules } from './decide.ts';
import { isPublicGrant } from './grants.ts';
import { Effort } from './pattern.ts';
import { isPublic, type Policy, policyOf, type Statement } from './policy.ts';

export type Answer = 'yes' | 'no' | 'conditional';

/** One kind of caller and its permissions. */
export interface Reach {
  readonly who: 'everyone' | 'signed' | 'account';
  /** Canonical id, and its name in the policy or ACL; null: a kind of callers. */
  readonly account: AccountName | null;
  readonly list: Answer;
  readonly read: Answer;
  readonly write: Answer;
  readonly delete: Answer;
}

export interface WhoAsked {
  readonly bucket: string;
  readonly owner: AccountName;
  readonly settings: BucketSettings;
  /** The object that is read, written and deleted. */
  readonly key: string;
  /** The ACL of the object, if it exists; null: none applies. */
  readonly objectGrants: readonly Grant[] | null;
  readonly effort: Effort;
}

const DEEDS = {
  list: ['s3:ListBucket', 'storage:read'],
  read: ['s3:GetObject', 'storage:read'],
  write: ['s3:PutObject', 'storage:append'],
  delete: ['s3:DeleteObject', 'storage:append'],
} as const satisfies Record<string, readonly [Action, Permission]>;

/** An id of no account. */
const OTHER = -1;
/** Effort of ten requests: several decisions are made for each kind of caller. */
const EFFORT = 5_000_000;

/** Everyone, every account, and each account that the policy or ACLs name. */
export function whoMay(whole: Omit<WhoAsked, 'effort'>): Reach[] {
  const asked = { ...whole, effort: new Effort(EFFORT) };
  const otherAccount: Principal = { ...NOBODY, via: 'key', accountId: OTHER, scopes: ['*'] };
  const callers = [
    { who: 'everyone', account: null, caller: NOBODY },
    { who: 'signed', account: null, caller: otherAccount },
    ...namedAccounts(asked).map((account) => {
      const caller = { ...otherAccount, canonicalId: account.id };
      return { who: 'account', account, caller } as const;
    }),
  ] as const;
  return callers.map(({ who, account, caller }) => {
    const may = (deed: keyof typeof DEEDS) => answerOf(asked, caller, deed);
    const deeds = { list: may('list'), read: may('read'), write: may('write'), delete: may('delete') };
    return { who, account, ...deeds };
  });
}

/** Whether the bucket's policy or ACL allows everyone something. */
export function isOpen({ bucket, settings: { policy, acl = [] } }: Omit<WhoAsked, 'effort'>): boolean {
  return (policy !== undefined && isPublic(policyOf(policy, bucket))) || acl.some(isPublicGrant);
}

function namedAccounts({ owner, settings, objectGrants }: Omit<WhoAsked, 'effort'>): AccountName[] {
  const { policy, acl = [] } = settings;
  const found = new Map<string, AccountName>();
  for (const [name, id] of Object.entries(policy?.principals ?? {})) found.set(id, { id, name });
  for (const grant of [...acl, ...(objectGrants ?? [])]) {
    if (!('group' in grant)) found.set(grant.id, { id: grant.id, name: grant.name });
  }
  found.delete(owner.id);
  return [...found.values()];
}

function answerOf({ bucket, key, ...asked }: WhoAsked, caller: Principal, deed: keyof typeof DEEDS): Answer {
  const [action, permission] = DEEDS[deed];
  const where = deed === 'list' ? { key: undefined, prefix: '' } : { key };
  const question = {
    action,
    permission,
    bucket,
    ...where,
    caller,
    values: () => undefined,
    effort: asked.effort,
  };
  const isAllowed = (rules: Rules) => {
    const decision = decide(question, rules);
    if (decision.reason === 'effort') throw tooLong();
    return decision.isAllowed;
  };
  const { policy, publicAccess, acl = null, ownership } = asked.settings;
  const hasLists = ownership !== 'BucketOwnerEnforced';
  const rulesWith = (choose: (statement: Statement) => Statement[]): Rules => ({
    owner: 0,
    policy: policy === undefined ? null : chosen({ bucket, policy, publicAccess }, choose),
    ownerMayMend: true,
    // `restrict` depends on the whole policy, and is handled by chosen().
    publicAccess: publicAccess && { ...publicAccess, restrict: false },
    bucketGrants: hasLists ? acl : null,
    objectGrants: hasLists ? asked.objectGrants : null,
  });
  if (isAllowed(rulesWith(strictly))) return 'yes';
  return isAllowed(rulesWith(loosely)) ? 'conditional' : 'no';
}

function tooLong(): AppError {
  return new AppError('invalid_request', 'The policy of the bucket takes too long to evaluate', {
    hint: 'Use fewer wildcards in the policy',
  });
}

interface Chosen {
  readonly bucket: string;
  readonly publicAccess: PublicAccess | undefined;
  readonly policy: BucketPolicy;
}

function chosen(
  { bucket, policy: stored, publicAccess }: Chosen,
  choose: (statement: Statement) => Statement[],
): Policy {
  const policy = policyOf(stored, bucket);
  const isKept = publicAccess?.restrict === true && isPublic(policy);
  const counting = policy.statements.filter(({ effect }) => !isKept || effect === 'Deny');
  return { statements: counting.flatMap(choose) };
}

/** Treats each condition of an Allow as unmet, and each of a Deny as met. */
function strictly(statement: Statement): Statement[] {
  if (statement.conditions.length === 0) return [statement];
  return statement.effect === 'Allow' ? [] : [{ ...statement, conditions: [] }];
}

/** The opposite of strictly(). */
function loosely(statement: Statement): Statement[] {
  if (statement.conditions.length === 0) return [statement];
  return statement.effect === 'Deny' ? [] : [{ ...statement, conditions: [] }];
}
