/** Additional keys of an account, each with a name, scopes, limits and an S3 key pair. */
import type { BucketLimit, Call, Principal, Scope } from '../../calls/principal.ts';
import { type Changes, turnAt } from '../../metadata/change.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import { newId, randomBase62, randomSecret } from '../../platform/ids.ts';
import type { Sealer } from '../../platform/master-key.ts';
import type { AccessKey, AccessKeyBody, CreatedAccessKey } from '../schema.ts';
import { s3SecretContext } from '../sign-in/authenticator.ts';
import type { PasswordChecks } from '../sign-in/password-checks.ts';
import type { AccountStore, KeyRow } from '../store.ts';
import { assertCouldHaveMade, assertCovered, type KeyRights, readExpiry } from './access-key-limits.ts';
import { hashSecret, newApiKey } from './api-key-text.ts';

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

export interface AccessKeysDeps {
  readonly store: AccountStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly checks: Pick<PasswordChecks, 'assertFresh'>;
  /** Maximum number of access keys per account. */
  readonly maxKeys: number;
  /** URL of the S3 endpoint, without a slash at the end. */
  readonly dataUrl: () => string;
}

export class AccessKeys {
  readonly #deps: AccessKeysDeps;

  constructor(deps: AccessKeysDeps) {
    this.#deps = deps;
  }

  /** Oldest first, those with an id after `afterId`. Secrets are never shown again. */
  async *list(
    principal: Principal,
    page: { readonly afterId: string; readonly limit: number },
  ): AsyncGenerator<AccessKey> {
    const rows = await this.#deps.store.accessKeysAfter(principal.accountId, page.afterId, page.limit);
    for (const row of rows) yield describe(row);
  }

  /**
   * A session needs a fresh password, because the key outlives it and is never asked for one. Throws
   * `password_required`, and the errors of issue().
   */
  async create(call: Call, body: AccessKeyBody): Promise<CreatedAccessKey> {
    await this.#deps.checks.assertFresh(call.principal);
    return this.issue(call, body);
  }

  /**
   * For a caller whose password has been checked. Throws `invalid_request`, `scope_required` (more than
   * the caller's own credential may, or for longer), `too_many_access_keys`.
   */
  async issue(call: Call, body: AccessKeyBody): Promise<CreatedAccessKey> {
    const { store, changes, clock, sealer, maxKeys, dataUrl } = this.#deps;
    if (!body.name.isWellFormed() || /\p{Cc}/u.test(body.name)) {
      throw invalidField('name', 'must not contain control characters');
    }
    const scopes: Scope[] = [...new Set(body.scopes)];
    const limits = body.buckets?.map(({ name, prefix }) => ({ bucket: name, prefix: prefix ?? '' })) ?? null;
    const expiresAt = readExpiry(body, clock);
    assertCovered(call.principal, { scopes, limits, expiresAt });

    const keyId = newId('key', clock);
    const apiKey = newApiKey();
    const secret = randomBase62(40);
    const row = {
      keyHash: hashSecret(apiKey),
      accountId: call.principal.accountId,
      keyId,
      name: body.name,
      scopes: JSON.stringify(scopes),
      bucketLimits: limits === null ? null : JSON.stringify(limits),
      s3AccessKey: newS3AccessKey(),
      s3SealedSecret: sealer.seal(Buffer.from(secret), s3SecretContext(keyId)),
      createdAt: clock.now(),
      expiresAt,
    };
    const response: CreatedAccessKey = {
      id: keyId,
      name: row.name,
      scopes,
      buckets: describeLimits(limits),
      access_key_id: row.s3AccessKey,
      created_at: formatTime(row.createdAt),
      expires_at: formatTimeOrNull(expiresAt),
      last_used_at: null,
      api_key: apiKey,
      secret_access_key: secret,
      s3_endpoint: dataUrl(),
    };
    return changes.run(call, (change) => {
      change.add(turnAt('accounts', row.accountId));
      change.expect(store.insertAccessKey(row, maxKeys), () => tooManyKeys(maxKeys));
      return response;
    });
  }

  /** Throws `access_key_not_found` and `scope_required` as `revoke` does. */
  async find(principal: Principal, keyId: string): Promise<AccessKey> {
    return describe(await this.#own(principal, keyId));
  }

  async #own(principal: Principal, keyId: string): Promise<KeyRow> {
    const row = await this.#deps.store.keyById(keyId);
    if (row?.account_id !== principal.accountId || row.kind !== 'access') throw accessKeyNotFound();
    assertCouldHaveMade(principal, rightsOf(row));
    return row;
  }

  /**
   * Ends a key at once, and the links created with it. Throws `access_key_not_found`, also for
   * another account's, and `scope_required` if the caller's own credential could not have created
   * it.
   */
  async revoke(call: Call, keyId: string): Promise<{ readonly id: string }> {
    const { principal } = call;
    const { store, changes } = this.#deps;
    await this.#own(principal, keyId);
    return changes.run(call, (change) => {
      change.expect(store.deleteAccessKey(principal.accountId, keyId), accessKeyNotFound);
      change.forgets({ kind: 'credential', id: keyId });
      return { id: keyId };
    });
  }
}

/** 20 characters like Amazon's, which some clients check: 4 of prefix, 80 random bits in base32. */
function newS3AccessKey(): string {
  let text = 'CLAK';
  for (const byte of randomSecret(16)) text += BASE32.charAt(byte & 31);
  return text;
}

function tooManyKeys(maxKeys: number): AppError {
  return new AppError('too_many_access_keys', `An account can have at most ${maxKeys} access keys`, {
    hint: 'Delete an unused one',
  });
}

function accessKeyNotFound(): AppError {
  return new AppError('access_key_not_found', 'There is no such access key');
}

function rightsOf({ scopes, bucket_limits: limits, expires_at: expiresAt }: KeyRow): KeyRights {
  return {
    scopes: JSON.parse(scopes) as Scope[],
    limits: limits === null ? null : (JSON.parse(limits) as BucketLimit[]),
    expiresAt,
  };
}

function describe(row: KeyRow): AccessKey {
  const { scopes, limits } = rightsOf(row);
  return {
    id: row.key_id,
    name: row.name,
    scopes: [...scopes],
    buckets: describeLimits(limits),
    access_key_id: row.s3_access_key ?? '',
    created_at: formatTime(row.created_at),
    expires_at: formatTimeOrNull(row.expires_at),
    last_used_at: formatTimeOrNull(row.last_used_at),
  };
}

function describeLimits(limits: readonly BucketLimit[] | null): AccessKey['buckets'] {
  return limits?.map(({ bucket, prefix }) => ({ name: bucket, prefix })) ?? null;
}
