/** The rights of one request's caller in one bucket. */
import { NOBODY, type Permission, type Principal, permits } from '../../calls/principal.ts';
import {
  type AccountName,
  type Acl,
  type Ownership,
  settingsOf,
} from '../../storage/buckets/bucket-settings.ts';
import type { BucketRow, HeldBucketRow } from '../../storage/buckets/buckets.ts';
import type { Action } from '../s3-call.ts';
import { S3Error } from '../s3-error.ts';
import type { ConditionValues } from './conditions.ts';
import { type Decision, decide, isDenied, type Question, type Rules } from './decide.ts';
import { aclOf } from './grants.ts';
import { Effort } from './pattern.ts';
import { policyOf } from './policy.ts';
import { type RequestFacts, requestValues, type TagFacts, withTags } from './request-values.ts';

/** The row of what is asked for, as far as access depends on it. */
export interface Subject {
  readonly acl: string | null;
  readonly tags: string | null;
}

export interface Asked {
  readonly action: Action;
  readonly permission: Permission;
  /** undefined: the bucket itself. */
  readonly key?: string | undefined;
  readonly prefix?: string | undefined;
  /** The version that is there. */
  readonly subject?: Subject | undefined;
  readonly requestedTags?: TagFacts['requested'];
  /** Values that the request says elsewhere than in headers and query, such as in a form. */
  readonly values?: ReadonlyMap<string, readonly string[]>;
}

export type CallFacts = Omit<RequestFacts, 'owner'>;

export class Access {
  readonly bucket: BucketRow;
  /** The bucket's. */
  readonly owner: AccountName;
  readonly caller: Principal;
  readonly #facts: CallFacts;
  readonly #effort = new Effort();
  #values: ReadonlyMap<string, readonly string[]> | undefined;

  constructor(bucket: BucketRow | HeldBucketRow, facts: CallFacts) {
    const { caller } = facts;
    this.bucket = bucket;
    this.caller = caller;
    this.#facts = facts;
    this.owner =
      'owner_id' in bucket
        ? { id: bucket.owner_id, name: bucket.owner_name }
        : { id: caller.canonicalId, name: caller.username };
    // A suspended account serves nobody.
    if ('owner_id' in bucket && bucket.owner_is_active === 0) throw new S3Error('AccessDenied');
  }

  get isOwner(): boolean {
    return this.caller.via !== 'nobody' && this.caller.accountId === this.bucket.account_id;
  }

  /** False for a key that is limited to other buckets, which are always the account's own. */
  get mayEnter(): boolean {
    const { bucketLimits } = this.caller;
    if (bucketLimits === null) return true;
    return this.isOwner && bucketLimits.some(({ bucket }) => bucket === this.bucket.name);
  }

  /** The actor on storage: the bucket's owner, who pays, with the rights of the caller's key. */
  get actor(): Principal {
    const { caller, bucket, owner } = this;
    if (this.isOwner) return caller;
    return {
      ...NOBODY,
      accountId: bucket.account_id,
      username: owner.name,
      canonicalId: owner.id,
      scopes: caller.via === 'nobody' ? ['storage:*'] : caller.scopes,
      via: 'key',
      credentialId: caller.credentialId,
    };
  }

  /** The owner of what others upload, and whether lists can be set. */
  get ownership(): Ownership {
    return settingsOf(this.bucket).ownership ?? 'ObjectWriter';
  }

  get hasLists(): boolean {
    return this.ownership !== 'BucketOwnerEnforced';
  }

  /** The list of a version, or the one that holds in its place. */
  aclOf(text: string | null): Required<Acl> {
    return aclOf(this.hasLists ? text : null, this.owner);
  }

  decide(asked: Asked): Decision {
    return decide(this.#question(asked), this.#rules(asked.subject));
  }

  allows(asked: Asked): boolean {
    return this.decide(asked).isAllowed;
  }

  /** Throws S3Error AccessDenied. */
  assert(asked: Asked): void {
    const { isAllowed, reason } = this.decide(asked);
    if (isAllowed) return;
    if (reason === 'scope') throw new S3Error('AccessDenied', `This key lacks the scope ${asked.permission}`);
    if (reason === 'effort') {
      const message =
        'The policy of the bucket takes too long to evaluate: give it fewer wildcards, or ask for fewer names at a time';
      throw new S3Error('AccessDenied', message);
    }
    if (reason === 'policy' && this.isOwner) {
      throw new S3Error('AccessDenied', `The policy of the bucket denies ${asked.action}`);
    }
    throw new S3Error('AccessDenied');
  }

  /** Whether the caller may learn that there is no such object: whoever may list it may. */
  mayMiss(asked: Asked): boolean {
    const question = this.#question(asked);
    const list = { action: 's3:ListBucket', permission: asked.permission } as const;
    const values = new Map(this.#common).set('s3:prefix', [asked.key ?? '']);
    return (
      permits(this.caller.via === 'nobody' ? EVERYONE : this.caller, asked.permission) &&
      !isDenied(question, this.#rules(undefined)) &&
      this.allows({ ...list, prefix: asked.key, values })
    );
  }

  get #common(): ReadonlyMap<string, readonly string[]> {
    this.#values ??= requestValues({ ...this.#facts, owner: this.owner.id });
    return this.#values;
  }

  #question({ action, permission, key, prefix, subject, requestedTags, values: own }: Asked): Question {
    const { caller, bucket } = this;
    const existing = subject?.tags ? (JSON.parse(subject.tags) as Record<string, string>) : undefined;
    // Most requests meet no policy, and need no values.
    const values: ConditionValues = (name) =>
      withTags(own ?? this.#common, { existing, requested: requestedTags })(name);
    const effort = this.#effort;
    return { action, permission, bucket: bucket.name, key, prefix, caller, values, effort };
  }

  #rules(subject: Subject | undefined): Rules {
    const { policy, publicAccess, acl = null } = settingsOf(this.bucket);
    return {
      owner: this.bucket.account_id,
      policy: policy === undefined ? null : policyOf(policy, this.bucket.name),
      ownerMayMend: policy?.holdsForOwner !== true,
      publicAccess,
      bucketGrants: this.hasLists ? acl : null,
      objectGrants: this.hasLists && subject !== undefined ? this.aclOf(subject.acl).grants : null,
    };
  }
}

/** Requests without a signature have no scopes to keep to. */
const EVERYONE: Principal = { ...NOBODY, scopes: ['storage:*'] };

/** Whether `text` is one of the names by which requests say whose bucket they expect. */
export function isNamedOwner(text: string, { id }: AccountName, accountId: number): boolean {
  return text === id || text.replace(/^0+(?=\d)/, '') === String(accountId);
}
