/**
 * Named keys of accounts (SSE-KMS): each wraps the data keys of the objects that S3 clients store
 * under its name, and is itself sealed under the master key. Names belong to the account.
 */
import type { Call, Principal } from '../../calls/principal.ts';
import { type Changes, turnAt } from '../../metadata/change.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { randomSecret } from '../../platform/ids.ts';
import type { Sealer } from '../../platform/master-key.ts';
import type { EncryptionKey } from '../schema.ts';
import type { NamedKeyRow, NamedKeySql } from './named-key-sql.ts';
import { keyNotFound, sealingContext } from './named-keyring.ts';

export interface NamedKeysDeps {
  readonly store: NamedKeySql;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly sealer: Pick<Sealer, 'seal'>;
}

const KEY_BYTES = 32;
const MAX_KEYS = 100;

export class NamedKeys {
  readonly #deps: NamedKeysDeps;

  constructor(deps: NamedKeysDeps) {
    this.#deps = deps;
  }

  /** Throws `encryption_key_exists`, `quota_exceeded`. */
  create(call: Call, keyId: string): Promise<EncryptionKey> {
    const { store, changes, clock, sealer } = this.#deps;
    assertUnlimited(call.principal);
    const { accountId } = call.principal;
    return changes.run(call, (change) => {
      const sealed = sealer.seal(randomSecret(KEY_BYTES), sealingContext(keyId));
      const row = { account_id: accountId, key_id: keyId, sealed, created_at: clock.now() };
      change.add(turnAt('accounts', accountId));
      change.add(store.insert(row, MAX_KEYS), (reason) =>
        reason === 'unique' ? keyExists(keyId) : tooMany(),
      );
      return present({ ...row, disabled_at: null });
    });
  }

  async list({ accountId }: Principal): Promise<EncryptionKey[]> {
    return (await this.#deps.store.list(accountId, MAX_KEYS)).map(present);
  }

  /**
   * Disables or enables a key; no error if it is in that state already. Throws
   * `encryption_key_not_found`.
   */
  change(call: Call, keyId: string, { enabled }: { readonly enabled: boolean }): Promise<EncryptionKey> {
    const { store, changes, clock } = this.#deps;
    assertUnlimited(call.principal);
    return changes.run(call, async (change) => {
      const row = await store.find(call.principal.accountId, keyId);
      if (row === undefined) throw keyNotFound(keyId);
      if (enabled === (row.disabled_at === null)) return present(row);
      const disabled_at = enabled ? null : clock.now();
      change.add(store.setDisabled(row.id, disabled_at), () => keyNotFound(keyId));
      change.forgets({ kind: 'named-key', id: row.id });
      return present({ ...row, disabled_at });
    });
  }

  /** Throws `encryption_key_not_found`, `encryption_key_in_use`. */
  remove(call: Call, keyId: string): Promise<EncryptionKey> {
    const { store, changes } = this.#deps;
    const { accountId } = call.principal;
    assertUnlimited(call.principal);
    return changes.run(call, async (change) => {
      const row = await store.find(accountId, keyId);
      if (row === undefined) throw keyNotFound(keyId);
      change.add(store.delete(row.id), async () =>
        (await store.find(accountId, keyId)) === undefined ? keyNotFound(keyId) : keyInUse(keyId),
      );
      return present(row);
    });
  }
}

type Shown = Pick<NamedKeyRow, 'key_id' | 'created_at' | 'disabled_at'>;

const present = ({ key_id, created_at, disabled_at }: Shown): EncryptionKey => ({
  id: key_id,
  created_at: formatTime(created_at),
  disabled_at: disabled_at === null ? null : formatTime(disabled_at),
});

function assertUnlimited({ bucketLimits }: Principal): void {
  if (bucketLimits === null) return;
  const detail = 'This key is limited to certain buckets and cannot change encryption keys';
  throw new AppError('scope_required', detail);
}

function keyExists(keyId: string): AppError {
  return new AppError('encryption_key_exists', `You already have an encryption key named ${keyId}`);
}

function keyInUse(keyId: string): AppError {
  return new AppError('encryption_key_in_use', `Objects or uploads are encrypted with ${keyId}`, {
    hint: 'Delete their versions, or copy them with another key; removed bytes still use the key for a few minutes',
  });
}

function tooMany(): AppError {
  return new AppError('quota_exceeded', `An account can have at most ${MAX_KEYS} encryption keys`);
}
