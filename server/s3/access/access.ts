/**
 * The rights of one request's caller in one bucket, and whether it may run its operation. The
 * operation itself then runs as the bucket's owner, so nothing may run before this check, except
 * operations with `decides`, which check each name.
 */

import { S3Error } from '../../../libs/s3-wire/index.ts';
import { NOBODY, type Permission, type Principal, permits } from '../../calls/principal.ts';
import {
  type AccountName,
  type Acl,
  type Ownership,
  settingsOf,
} from '../../storage/buckets/bucket-settings.ts';
import type { BucketRow, HeldBucketRow } from '../../storage/buckets/buckets.ts';
import { shownId } from '../../storage/listing/name-listing.ts';
import type { Content } from '../../storage/objects/downloads.ts';
import { requestedTags } from '../objects/object-headers.ts';
import type { Action } from '../s3-call.ts';
import {
  accessOf,
  assertVersionId,
  keyOf,
  type S3Call,
  type S3Operation,
  type S3Request,
  type S3Sender,
  type S3Tools,
} from '../s3-call.ts';
import type { ConditionValues } from './conditions.ts';
import { type Decision, decide, isDenied, type Question, type Rules } from './decide.ts';
import { aclOf } from './grants.ts';
import { Effort } from './pattern.ts';
import { policyOf } from './policy.ts';
import { type RequestFacts, requestValues, type TagFacts, withTags } from './request-values.ts';

/** The columns of the target that access depends on. */
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
  /** The existing version. */
  readonly subject?: Subject | undefined;
  readonly requestedTags?: TagFacts['requested'];
  /** Values that the request sends outside headers and query, such as in a form. */
  readonly values?: ReadonlyMap<string, readonly string[]>;
}

export type CallFacts = Omit<RequestFacts, 'owner'>;

export class Access {
  readonly bucket: BucketRow;
  /** The bucket's. */
  readonly owner: AccountName;
  readonly caller: Principal;
  readonly #facts: CallFacts;
  #spent: Effort | undefined;
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
    // A suspended account grants access to nobody.
    if ('owner_id' in bucket && bucket.owner_is_active === 0) throw new S3Error('AccessDenied');
  }

  get isOwner(): boolean {
    return this.caller.via !== 'nobody' && this.caller.accountId === this.bucket.account_id;
  }

  /** False for a key limited to other buckets of its own account. */
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
      isAuditor: caller.isAuditor,
      scopes: caller.via === 'nobody' ? ['storage:*'] : caller.scopes,
      via: 'key',
      credentialId: caller.credentialId,
    };
  }

  /** Ownership of objects that other accounts upload, and whether ACLs are enabled. */
  get ownership(): Ownership {
    return settingsOf(this.bucket).ownership ?? 'ObjectWriter';
  }

  get hasLists(): boolean {
    return this.ownership !== 'BucketOwnerEnforced';
  }

  /** The ACL of a version, or the default one. */
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
        'The policy of the bucket takes too long to evaluate: use fewer wildcards, or request fewer names at a time';
      throw new S3Error('AccessDenied', message);
    }
    if (reason === 'policy' && this.isOwner) {
      throw new S3Error('AccessDenied', `The policy of the bucket denies ${asked.action}`);
    }
    throw new S3Error('AccessDenied');
  }

  /** Whether the caller may learn that an object does not exist: only callers who may list it. */
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
    const effort = () => this.#effort;
    return {
      action,
      permission,
      bucket: bucket.name,
      key,
      prefix,
      caller,
      values,
      get effort() {
        return effort();
      },
    };
  }

  /** Shared by all access decisions of the request. */
  get #effort(): Effort {
    this.#spent ??= new Effort();
    return this.#spent;
  }

  #rules(subject: Subject | undefined): Rules {
    const { policy, publicAccess, acl = null } = settingsOf(this.bucket);
    const objectGrants = () =>
      this.hasLists && subject !== undefined ? this.aclOf(subject.acl).grants : null;
    return {
      owner: this.bucket.account_id,
      policy: policy === undefined ? null : policyOf(policy, this.bucket.name),
      ownerMayMend: policy?.holdsForOwner !== true,
      publicAccess,
      bucketGrants: this.hasLists ? acl : null,
      // Requests of the owner do not need it.
      get objectGrants() {
        return objectGrants();
      },
    };
  }
}

/** Requests without a signature have no scopes to check. */
const EVERYONE: Principal = { ...NOBODY, scopes: ['storage:*'] };

/** Whether `text` is a valid name of the expected bucket owner. */
function isNamedOwner(text: string, { id }: AccountName, accountId: number): boolean {
  return text === id || text.replace(/^0+(?=\d)/, '') === String(accountId);
}

type Wanted = Pick<S3Operation, 'action' | 'permission' | 'versionAction'>;

/** Throws S3Error AccessDenied, and the errors of finding the object. */
export async function authorize(call: S3Call, operation: S3Operation): Promise<void> {
  const { permission, decides, reads, level, byInitiator } = operation;
  const { access, caller } = call.who;
  const { target } = call.what;
  if (caller.via !== NOBODY.via && !permits(caller, permission)) {
    throw new S3Error('AccessDenied', `This key lacks the scope ${permission}`);
  }
  if (access === null) {
    if (caller.via === NOBODY.via) throw new S3Error('AccessDenied', 'This needs a signed request');
    return;
  }
  if (!access.mayEnter) throw new S3Error('AccessDenied');
  if (decides === true) return;
  if (reads === true) return authorizeContent(call, operation);
  const requested = level === 'object' ? requestedTags(call.what.headers) : undefined;
  const asked = {
    ...wantedOf(call.what, operation),
    key: target.key ?? undefined,
    requestedTags: requested,
  };
  if (byInitiator === true && access.decide(asked).reason === 'nothing') return;
  access.assert(asked);
}

/** Decides about the object of the request; call.content is then that object. */
export async function authorizeContent(
  call: S3Call,
  operation: Wanted,
  requested?: Readonly<Record<string, string>>,
): Promise<void> {
  const versionId = call.what.target.query.get('versionId');
  const wanted = {
    ...wantedOf(call.what, operation),
    key: keyOf(call.what),
    versionId,
    requestedTags: requested,
  };
  call.content = await permittedContent(call, accessOf(call), wanted);
}

/** The action to check; some actions differ for versions. */
function wantedOf({ target }: S3Request, { action, versionAction, permission }: Wanted) {
  return { action: target.query.has('versionId') ? (versionAction ?? action) : action, permission };
}

/**
 * The bucket of that name for the caller: its own, or else the one that other accounts reach by it.
 * `:name` skips the caller's own, and `account:name` is a bucket of that account alone.
 */
export async function openBucket(
  { storage, facts }: Pick<S3Tools, 'storage'> & Pick<S3Sender, 'facts'>,
  name: string,
  expectedOwner: unknown,
): Promise<Access> {
  const { caller } = facts;
  const [, account, own = name] = /^([^:]*):(.*)$/s.exec(name) ?? [];
  const bucket = account
    ? await storage.buckets.ofAccount(account, own)
    : await storage.buckets.named(account === undefined ? caller.accountId : 0, own);
  // Bucket names that are not global are private to the account.
  if (bucket === undefined && account) throw new S3Error('AccessDenied');
  if (bucket === undefined) throw new S3Error('NoSuchBucket', undefined, { fields: { BucketName: name } });
  const access = new Access(bucket, facts);
  const isExpected =
    expectedOwner === undefined || isNamedOwner(String(expectedOwner), access.owner, bucket.account_id);
  if (!isExpected) throw new S3Error('AccessDenied');
  return access;
}

export type AskedContent = Asked & { readonly key: string; readonly versionId?: string | undefined };

/**
 * Finds the object of a name. Throws S3Error AccessDenied (also if missing, unless the caller may list it),
 * InvalidArgument, NoSuchKey, NoSuchVersion, MethodNotAllowed (a delete marker by its id).
 */
export async function permittedContent(
  { tools: { storage } }: S3Call,
  access: Access,
  { versionId, ...asked }: AskedContent,
): Promise<Content> {
  if (versionId !== undefined) assertVersionId(versionId);
  const { key: name } = asked;
  const found = await storage.downloads.findNamed(access.actor, access.bucket, { name, versionId });
  if (found !== undefined && 'content' in found) {
    access.assert({ ...asked, subject: found.content.row });
    return found.content;
  }
  if (!access.mayMiss(asked)) throw new S3Error('AccessDenied');
  const fields = { Key: name };
  if (found === undefined) {
    if (versionId === undefined) throw new S3Error('NoSuchKey', undefined, { fields });
    throw new S3Error('NoSuchVersion', undefined, { fields: { ...fields, VersionId: versionId } });
  }
  const headers = { 'x-amz-delete-marker': 'true', 'x-amz-version-id': shownId(found.marker) };
  if (versionId === undefined) throw new S3Error('NoSuchKey', undefined, { fields, headers });
  const more = { allow: 'DELETE', 'last-modified': new Date(found.marker.created_at).toUTCString() };
  throw new S3Error('MethodNotAllowed', undefined, { fields, headers: { ...headers, ...more } });
}
