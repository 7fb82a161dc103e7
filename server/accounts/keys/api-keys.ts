/** The account's own key: one current key, and after a rotation the older ones until their overlap ends. */
import type { Call, Principal } from '../../calls/principal.ts';
import type { Change, Changes } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';
import { type Clock, formatTimeOrNull } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Sealer } from '../../platform/master-key.ts';
import { describeAccount } from '../account-view.ts';
import type { RotatedKey } from '../schema.ts';
import type { PasswordChecks } from '../sign-in/password-checks.ts';
import type { AccountStore, KeyRow } from '../store.ts';
import { hashSecret, newApiKey } from './api-key-text.ts';

/** Maximum valid main keys of one account, including the current one. */
const MAX_MAIN_KEYS = 10;

export interface ApiKeysDeps {
  readonly store: AccountStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly sealer: Sealer;
  readonly checks: PasswordChecks;
}

/** A key that works once its statement is committed. */
export interface IssuedKey {
  readonly text: string;
  readonly statement: Statement;
}

export class ApiKeys {
  readonly #store: AccountStore;
  readonly #changes: Changes;
  readonly #clock: Clock;
  readonly #sealer: Sealer;
  readonly #checks: PasswordChecks;

  constructor(deps: ApiKeysDeps) {
    this.#store = deps.store;
    this.#changes = deps.changes;
    this.#clock = deps.clock;
    this.#sealer = deps.sealer;
    this.#checks = deps.checks;
  }

  /** Creates a key for an account; `text`: the key to use. */
  issue(accountId: number, text = newApiKey()): IssuedKey {
    const keyId = newId('key', this.#clock);
    const statement = this.#store.insertMainKey({
      keyHash: hashSecret(text),
      accountId,
      keyId,
      sealedKey: this.#sealer.seal(Buffer.from(text), apiKeyContext(keyId)),
      createdAt: this.#clock.now(),
    });
    return { text, statement };
  }

  /** The account's current key; null when it has none. */
  async current(accountId: number): Promise<string | null> {
    const row = await this.#currentRow(accountId);
    if (row === undefined || row.sealed_key === null) return null;
    return this.#sealer.unseal(row.sealed_key, apiKeyContext(row.key_id)).toString();
  }

  /** The id of the account's current key; undefined when it has none. */
  async currentId(accountId: number): Promise<string | undefined> {
    return (await this.#currentRow(accountId))?.key_id;
  }

  /**
   * True if the principal stands for the whole account: a session, or the current key. Access keys
   * and keys in their overlap do not, else they could outlive their limits by reading or changing
   * that key.
   */
  async ownsAccount(principal: Principal): Promise<boolean> {
    return principal.via === 'session' || (await this.ownKeyState(principal)) === 'current';
  }

  /** The state of the account's main keys; null for every other credential. */
  async ownKeyState({ via, credentialId }: Principal): Promise<'current' | 'ending' | null> {
    if (via !== 'key') return null;
    const row = await this.#store.keyById(credentialId);
    if (row?.kind !== 'main') return null;
    return row.expires_at === null ? 'current' : 'ending';
  }

  /** Throws `scope_required` unless ownsAccount. */
  async assertOwner(principal: Principal): Promise<void> {
    if (await this.ownsAccount(principal)) return;
    throw new AppError('scope_required', "This call needs the account's current key or a session");
  }

  /**
   * Gives the account a new key; the old one ends after `overlapSeconds`. With 0 it ends at once, and so
   * does every older one still in its overlap. Throws `scope_required`, `password_required`,
   * `too_many_access_keys` (too many overlaps), `write_conflict`.
   */
  rotate(call: Call, overlapSeconds: number): Promise<RotatedKey> {
    const { accountId } = call.principal;
    return this.#changes.run(call, async (change) => {
      await this.assertOwner(call.principal);
      await this.#checks.assertFresh(call.principal);
      const account = await this.#store.account(accountId);
      const old = await this.#currentRow(accountId);
      if (account === undefined || old === undefined) throw rotatedByOthers();
      const now = this.#clock.now();
      const endsAt = overlapSeconds === 0 ? null : now + overlapSeconds * 1000;
      if (endsAt !== null) await this.#assertSpace(accountId, now);
      // Another rotation may be first.
      change.expect(this.#store.endMainKeyAt(old.key_id, endsAt ?? now), 'retry');
      if (endsAt === null) change.add(this.#store.deleteMainKeys(accountId));
      const issued = this.issue(accountId);
      change.add(issued.statement);
      change.forgets({ kind: 'account', id: accountId });
      return {
        ...describeAccount(account, issued.text),
        previous_key_expires_at: formatTimeOrNull(endsAt),
      };
    });
  }

  /** Makes `text`, or a new key, the account's only key. Returns it. */
  replaceAll(change: Change, accountId: number, text?: string): string {
    const issued = this.issue(accountId, text);
    change.addAll([this.#store.deleteMainKeys(accountId), issued.statement]);
    change.forgets({ kind: 'account', id: accountId });
    return issued.text;
  }

  async #currentRow(accountId: number): Promise<KeyRow | undefined> {
    return (await this.#store.mainKeys(accountId)).find((row) => row.expires_at === null);
  }

  async #assertSpace(accountId: number, now: number): Promise<void> {
    const rows = await this.#store.mainKeys(accountId);
    const living = rows.filter((row) => row.expires_at === null || row.expires_at > now);
    if (living.length < MAX_MAIN_KEYS) return;
    throw new AppError('too_many_access_keys', `This account has ${MAX_MAIN_KEYS} keys, the maximum`, {
      hint: 'Rotate with overlap_seconds 0 to end the older keys',
    });
  }
}

function rotatedByOthers(): AppError {
  return new AppError('write_conflict', 'The key is being rotated by another request');
}

function apiKeyContext(keyId: string): string {
  return `api-key:${keyId}`;
}
