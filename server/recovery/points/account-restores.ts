/**
 * One account of a recovery point, restored as a new account beside the live ones. Its resources are created
 * again for the new account, each by its domain: under quotas, and charged from then on. No credentials are
 * restored: no password, no key, no session, no right of other accounts.
 *
 * The commit that creates the new account, a machine or a database records it, and a bucket's history
 * continues where it ended: so a call that was interrupted, or refused by a quota, can be repeated.
 */

import {
  type AccountResource,
  type AccountResources,
  KINDS,
  type Kind,
  ownerOf,
} from '../../calls/account-resources.ts';
import type { Call, Work } from '../../calls/principal.ts';
import {
  type CallEntry,
  type Changes,
  type InFirst,
  inFirstCommit,
  type Recorder,
} from '../../metadata/change.ts';
import type { Reads, Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, type ErrorCode, isAppError } from '../../platform/errors.ts';
import { plural } from '../../platform/plural.ts';
import { RestoreTurns } from '../../resources/restore-turns.ts';
import type { NewAccountRestore, RestoredAccount, RestoredItem } from '../schema.ts';
import {
  ACCOUNT,
  type NewAccount,
  type OldAccount,
  RestoredResourcesStore,
} from './restored-resources-store.ts';

export interface AccountRestoresDeps {
  /** Live. */
  readonly reads: Reads;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly points: {
    points(): Promise<readonly { readonly pointId: string }[]>;
    /** Opens the metadata of an intact point while `work` runs. Throws `overloaded`, `out_of_space`, … */
    during<T>(pointId: string, work: (point: { readonly reads: Reads }) => Promise<T>): Promise<T>;
  };
  readonly resources: Readonly<Record<Kind, AccountResources>>;
  /** Makes an account with its first key and its sign-up credits. Throws `username_taken`, `email_taken`. */
  readonly createAccount: (
    recorder: Recorder,
    fields: { readonly username: string; readonly email: string },
  ) => Promise<MadeAccount>;
}

interface MadeAccount {
  readonly id: number;
  readonly username: string;
  readonly email: string;
  readonly canonical_id: string;
  readonly api_key: string | null;
  readonly credits: number;
}

interface Found {
  readonly old: OldAccount;
  readonly resources: readonly AccountResource[];
}

interface Asked {
  readonly work?: Work | undefined;
  readonly entry?: CallEntry | undefined;
}

interface Restore {
  readonly work: Work | undefined;
  /** Stores the entry of the call in the first commit. */
  readonly inFirst: InFirst;
}

interface Origin extends Restore {
  readonly pointId: string;
  readonly old: OldAccount;
  readonly resource: AccountResource;
}

/** Errors that end the whole restore, because retrying other resources is pointless. */
const OF_ALL: readonly ErrorCode[] = [
  'shutting_down',
  'operation_cancelled',
  'target_unavailable',
  'read_only',
  'out_of_space',
];

export class AccountRestores {
  readonly #deps: AccountRestoresDeps;
  readonly #store: RestoredResourcesStore;
  readonly #turns = new RestoreTurns({ what: 'whole accounts' });

  constructor(deps: AccountRestoresDeps) {
    this.#deps = deps;
    this.#store = new RestoredResourcesStore(deps.reads);
  }

  /**
   * Resolves when every resource was tried; refused ones are in the response. Throws
   * `point_not_found`, `account_not_found` if the point has no such account, `username_taken`,
   * `email_taken`, `invalid_request`, `overloaded` while the account is being restored, and the
   * errors that end the whole restore: resources restored by then are kept.
   */
  async restore(
    pointId: string,
    account: string,
    { work, entry, ...wanted }: NewAccountRestore & Asked,
  ): Promise<RestoredAccount> {
    const { points } = this.#deps;
    const isKnown = (await points.points()).some((point) => point.pointId === pointId);
    if (!isKnown) throw new AppError('point_not_found', `No usable recovery point has the id ${pointId}`);
    const found = await points.during(pointId, ({ reads }) => this.#find(reads, pointId, account));
    if (wanted.preview === true) return this.#preview(pointId, found, wanted);
    return this.#turns.run(found.old.id, () =>
      this.#restore(pointId, found, { ...wanted, work, inFirst: inFirstCommit(entry) }),
    );
  }

  async #find(reads: Reads, pointId: string, account: string): Promise<Found> {
    const old = await new RestoredResourcesStore(reads).account(account);
    if (old === undefined) {
      throw new AppError('account_not_found', `The recovery point ${pointId} has no account ${account}`);
    }
    const resources: AccountResource[] = [];
    for (const kind of KINDS) resources.push(...(await this.#deps.resources[kind].list(reads, old.id)));
    return { old, resources };
  }

  async #preview(
    pointId: string,
    { old, resources }: Found,
    { username, email }: NewAccountRestore,
  ): Promise<RestoredAccount> {
    const there = await this.#store.restored(username);
    if (there !== undefined) assertSame(there, { pointId, old });
    const items: RestoredItem[] = [];
    for (const resource of resources) {
      const id = there && (await this.#store.made(there.accountId, sourceOf(resource)));
      items.push(itemOf(resource, id === undefined ? {} : { made_id: id }));
    }
    const account = { username, email, account_id: there?.accountId ?? null, api_key: null };
    return { ...common(pointId, old, account), preview: true, state: 'preview', items };
  }

  async #restore(
    pointId: string,
    { old, resources }: Found,
    { username, email, work, inFirst }: NewAccountRestore & Restore,
  ): Promise<RestoredAccount> {
    const there = await this.#store.restored(username);
    if (there !== undefined) assertSame(there, { pointId, old });
    const made =
      there === undefined
        ? await inFirst((call) => this.#create(call, { pointId, old }, { username, email }))
        : undefined;
    const account = there ?? accountOf(made);
    const items: RestoredItem[] = [];
    const totals = { total: resources.length, totalBytes: bytesOf(resources) };
    for (const [done, resource] of resources.entries()) {
      work?.report({ done, bytes: bytesOf(resources.slice(0, done)), ...totals });
      if (work?.signal.aborted === true) throw cancelled(work.signal.reason, items);
      items.push(await this.#restoreResource(account, { pointId, old, resource, work, inFirst }));
    }
    const isWhole = items.every(({ made_id, lacks }) => made_id !== null && lacks.length === 0);
    const shown = {
      username: account.username,
      email: account.email,
      account_id: account.accountId,
      api_key: made?.api_key ?? null,
    };
    return {
      ...common(pointId, old, shown),
      preview: false,
      state: isWhole ? 'complete' : 'partial',
      items,
    };
  }

  #create(
    call: Recorder,
    { pointId, old }: { readonly pointId: string; readonly old: OldAccount },
    fields: { readonly username: string; readonly email: string },
  ): Promise<MadeAccount> {
    const { createAccount, clock } = this.#deps;
    const record = (response: unknown): readonly Statement[] => {
      const { id: account_id } = response as MadeAccount;
      const row = { account_id, source: ACCOUNT, point_id: pointId, made: String(old.id) };
      return [this.#store.insert(row, clock.now()), ...call.record(response)];
    };
    return createAccount({ record }, fields);
  }

  async #restoreResource(
    account: NewAccount,
    { pointId, old, resource, work, inFirst }: Origin,
  ): Promise<RestoredItem> {
    const { changes, clock, resources } = this.#deps;
    const source = sourceOf(resource);
    const known = await this.#store.made(account.accountId, source);
    if (known !== undefined) return itemOf(resource, { made_id: known });
    const row = { account_id: account.accountId, source, point_id: pointId };
    const noted = (made: string) => this.#store.insert({ ...row, made }, clock.now());
    const principal = ownerOf(account);
    try {
      const { id, lacks } = await inFirst((first) => {
        // The response of a machine or database names the origin.
        const record = (response: unknown) => [noted(idIn(response)), ...first.record(response)];
        const call: Call = { principal, record, entry: first.entry, ...(work && { work }) };
        return resources[resource.kind].restore(call, { pointId, accountId: old.id, resource });
      });
      // The bucket is complete from here on; an incomplete one is retried.
      if (resource.kind === 'bucket' && lacks.length === 0) {
        await inFirst(({ record }) => changes.store([noted(id), ...record(undefined)]));
      }
      return itemOf(resource, { made_id: id, lacks });
    } catch (error) {
      if (!isAppError(error) || OF_ALL.includes(error.code)) throw error;
      return itemOf(resource, { refusal: error.message });
    }
  }
}

function bytesOf(resources: readonly AccountResource[]): number {
  return resources.reduce((sum, { sizeBytes }) => sum + (sizeBytes ?? 0), 0);
}

function cancelled(reason: unknown, items: readonly RestoredItem[]): unknown {
  if (!isAppError(reason)) return reason;
  const there = items.filter(({ made_id }) => made_id !== null).length;
  const detail = `${reason.message}; ${plural(there, 'resource')} of the account had been restored`;
  return new AppError(reason.code, detail, { hint: 'Repeat the call with the same user name to continue' });
}

const sourceOf = ({ kind, id }: AccountResource): string => `${kind} ${id}`;

function idIn(response: unknown): string {
  const { vm_id, database_id } = response as { readonly vm_id?: string; readonly database_id?: string };
  return vm_id ?? database_id ?? '';
}

function itemOf(
  { kind, id, name, sizeBytes }: AccountResource,
  more: Partial<Pick<RestoredItem, 'made_id' | 'lacks' | 'refusal'>>,
): RestoredItem {
  return { kind, name, source_id: id, size: sizeBytes, made_id: null, lacks: [], refusal: null, ...more };
}

function common(pointId: string, { id, username }: OldAccount, account: RestoredAccount['account']) {
  return { point_id: pointId, from: { account_id: id, username }, account };
}

function accountOf(made: MadeAccount | undefined): NewAccount {
  if (made === undefined) throw new Error('the account to restore into was not found');
  const { id: accountId, username, canonical_id: canonicalId, email } = made;
  return { accountId, username, canonicalId, email };
}

/** Throws `username_taken` if the account was restored from another account or point. */
function assertSame(
  there: { readonly username: string; readonly point_id: string; readonly made: string },
  { pointId, old }: { readonly pointId: string; readonly old: OldAccount },
): void {
  if (there.point_id === pointId && there.made === String(old.id)) return;
  throw new AppError(
    'username_taken',
    `The account ${there.username} was restored from account ${there.made} of ${there.point_id}`,
    { hint: 'Choose another user name' },
  );
}
