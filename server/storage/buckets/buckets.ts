/** Creates, finds, changes and deletes buckets. */
import type { Call, Principal } from '../../calls/principal.ts';
import { type Change, type Changes, turnAt } from '../../metadata/change.ts';
import { Listed, listRows } from '../../metadata/list.ts';
import { REST_MS, type RestingNamesStore } from '../../metadata/resting-names-store.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { KeyedMutex } from '../../platform/concurrency.ts';
import { formatSize } from '../listing/entries.ts';
import { objectLocked } from '../objects/object-lock.ts';
import type { Bucket, BucketChange, NewBucket } from '../schema.ts';
import { VERSIONING } from '../schema.ts';
import type { StorageBilling } from '../storage-billing.ts';
import { assertBucketName } from '../uploads/upload-fields.ts';
import {
  bucketExists,
  bucketNotFound,
  limitedKey,
  nameTaken,
  notEmpty,
  tooManySettings,
} from './bucket-errors.ts';
import {
  type BucketSettings,
  type SettingName,
  type SettingsChange,
  settingsOf,
  settingsText,
  withSettings,
} from './bucket-settings.ts';
import {
  type BucketChecksums,
  type BucketLike,
  type BucketRow,
  type BucketSql,
  damagedBucket,
  type HeldBucketRow,
  isSoundBucket,
  NO_CONTENT,
  type StorageTotals,
} from './bucket-sql.ts';

export type { BucketRow, HeldBucketRow } from './bucket-sql.ts';

const DEFAULT_REGION = 'us-east-1';
/** Total for all buckets of an account: a policy has up to 20 KiB, lifecycle rules up to 512 KiB. */
const MAX_SETTINGS_BYTES = 16 * 2 ** 20;

export interface BucketsDeps {
  readonly changes: Changes;
  readonly store: BucketSql;
  readonly resting: RestingNamesStore;
  readonly clock: Clock;
  readonly billing: Pick<StorageBilling, 'assertCredit' | 'bucketCreated' | 'bucketDeleted'>;
  /** Called with the row id of a bucket whose row is damaged. */
  readonly onDamagedBucket: (bucket: number) => void;
}

/** Changes that only S3 clients request. */
interface S3Change {
  readonly suspends?: boolean;
  readonly namedKey?: BucketSettings['namedKey'] | null;
}

export class Buckets {
  readonly #deps: BucketsDeps;
  /** Changes of one bucket run one at a time: concurrent ones would restart each other. */
  readonly #turns = new KeyedMutex();
  /** Row ids of buckets that are being emptied for deletion. */
  readonly #deleting = new Set<number>();

  constructor(deps: BucketsDeps) {
    this.#deps = deps;
  }

  /** Sums over all accounts. */
  totals(): Promise<StorageTotals> {
    return this.#deps.store.totals();
  }

  /**
   * Other accounts reach it by its name if no other bucket has that name; `isGlobal`: this is
   * required. Throws `invalid_bucket_name`, `bucket_exists`, `bucket_name_taken`,
   * `insufficient_credits`, `quota_exceeded`.
   */
  async create(
    call: Call,
    input: NewBucket & {
      readonly isGlobal?: boolean;
      readonly settings?: BucketSettings;
      /** Settings to copy from another bucket, instead of those above. */
      readonly like?: BucketLike;
    },
  ): Promise<Bucket> {
    const { principal } = call;
    assertBucketName(input.name);
    if (principal.bucketLimits !== null) throw limitedKey();
    const { changes, store, billing, clock } = this.#deps;
    await billing.assertCredit(principal.accountId);
    const row = {
      account_id: principal.accountId,
      name: input.name,
      region: input.region ?? DEFAULT_REGION,
      versioning: Number(input.versioning ?? false),
      encryption: Number(input.encryption ?? false),
      created_at: clock.now(),
      settings: settingsText(input.settings ?? {}),
      ...input.like,
    };
    return changes.run(call, async (change) => {
      if (await store.find(principal.accountId, row.name)) throw bucketExists(row.name);
      const isHeld = await this.#isHeld(change, row);
      if (isHeld && input.isGlobal === true) throw nameTaken(row.name);
      this.#assertRoom(change, { ...row, settings: null }, row.settings);
      const id = change.add(store.insert(row, isHeld ? null : row.name), 'retry');
      change.addAll(await billing.bucketCreated({ ...row, id }), 'retry');
      return present({ ...row, ...NO_CONTENT, id: 0 });
    });
  }

  /**
   * Whether the name belongs to another account on the S3 origin: one of its buckets has the name,
   * or had it recently. If not, the change reserves the name.
   */
  async #isHeld(change: Change, { name, account_id: accountId }: Pick<BucketRow, 'name' | 'account_id'>) {
    const { store, resting, clock } = this.#deps;
    const at = clock.now();
    const closedAt = await store.heldBy(name);
    if (closedAt === null || (closedAt !== undefined && closedAt + REST_MS > at)) return true;
    const wish = { kind: 'bucket', name, accountId, at } as const;
    if (await resting.isForAnother(wish)) return true;
    if (closedAt !== undefined) change.add(store.freeName(name), 'retry');
    change.expect(resting.expectNotForAnother(wish), 'retry');
    change.add(resting.wake('bucket', name), 'retry');
    return false;
  }

  /**
   * The caller's bucket of that name. Throws `bucket_not_found`, also if it is someone else's, and
   * `data_corrupted`.
   */
  async find(principal: Principal, name: string): Promise<BucketRow> {
    return this.#sound(await this.findAny(principal, name));
  }

  /**
   * Same as find() for callers that use none of its settings, so that a bucket with a damaged row
   * can be listed, read and removed. Throws `bucket_not_found`.
   */
  async findAny(principal: Principal, name: string): Promise<BucketRow> {
    const row = await this.#deps.store.find(principal.accountId, name);
    if (!row || !mayEnter(principal, name)) throw bucketNotFound(name);
    return row;
  }

  /** Throws `data_corrupted`, and marks the row as damaged. */
  #sound<R extends BucketRow | undefined>(row: R): R {
    if (row === undefined || isSoundBucket(row)) return row;
    this.#deps.onDamagedBucket(row.id);
    throw damagedBucket(row);
  }

  /** Whether the account has a bucket with that name, or released the name recently. */
  async wasOf({ accountId }: Principal, name: string): Promise<boolean> {
    const { store, resting, clock } = this.#deps;
    if ((await store.find(accountId, name)) !== undefined) return true;
    return resting.isFor({ kind: 'bucket', name, accountId, at: clock.now() });
  }

  /**
   * The account's bucket of that name, or else the one that others reach by it. Not checked for access.
   * Throws `data_corrupted`.
   */
  async named(accountId: number, name: string): Promise<BucketRow | HeldBucketRow | undefined> {
    const { store } = this.#deps;
    const own = accountId === 0 ? undefined : await store.find(accountId, name);
    return this.#sound(own ?? (await store.holder(name)));
  }

  /** By the account's canonical id or number. Not checked for access. Throws `data_corrupted`. */
  async ofAccount(account: string, name: string): Promise<HeldBucketRow | undefined> {
    const { store } = this.#deps;
    if (/^[0-9a-f]{64}$/.test(account)) return this.#sound(await store.ofAccount(account, name));
    if (!/^\d{1,15}$/.test(account)) return undefined;
    return this.#sound(await store.ofAccount(Number(account), name));
  }

  async describe(principal: Principal, name: string): Promise<Bucket> {
    return present(await this.find(principal, name));
  }

  /** At most `limit`, oldest first, those after row id `after`. `id` is that row id, for the cursor only. */
  async *list(principal: Principal, after: number, limit: number): AsyncGenerator<Listed<BucketRow, Bucket>> {
    const { store } = this.#deps;
    let left = limit;
    const page = { after, limit: Number.POSITIVE_INFINITY };
    for await (const row of listRows(page, (last, size) => store.list(principal.accountId, last, size))) {
      if (!mayEnter(principal, row.name)) continue;
      yield new Listed(row, presentAny(row));
      if (--left === 0) return;
    }
  }

  /**
   * Settings apply to later uploads; stored objects do not change. `suspends`: versioning that was
   * never on is suspended too, as S3 clients may request. `namedKey`: null, none; if missing, it is
   * unchanged while there is encryption. Throws `bucket_not_found`, `scope_required`, and
   * `object_locked` for suspending versioning while object lock is enabled.
   */
  async change(
    call: Call,
    name: string,
    { suspends = false, namedKey, ...wanted }: BucketChange & S3Change,
  ): Promise<Bucket> {
    if (call.principal.bucketLimits !== null) throw limitedKey();
    const { store } = this.#deps;
    return this.#inTurn(call, name, async (change) => {
      const row = await this.find(call.principal, name);
      const { encryption = row.encryption === 1 } = wanted;
      const versioning =
        wanted.versioning === undefined ? row.versioning : switched(row, wanted.versioning, suspends);
      if (versioning !== VERSIONING.on) assertNoLock(row);
      const key = encryption && namedKey !== null ? namedKey : undefined;
      const keeps = namedKey === undefined && encryption;
      const settings = keeps ? row.settings : withSettings(row, { namedKey: key });
      const after = { ...row, versioning, encryption: Number(encryption), settings };
      change.add(store.update(row, after), 'retry');
      return present(after);
    });
  }

  /**
   * Sets one of the S3 settings; undefined removes it. `check` throws if the other settings do not
   * allow it. Throws `bucket_not_found`, `scope_required`, and `object_locked` for disabling object
   * lock, or enabling it without versioning.
   */
  // biome-ignore lint/complexity/useMaxParams: what is set, and when not
  async configure<N extends SettingName>(
    call: Call,
    name: string,
    [setting, value]: readonly [setting: N, value: BucketSettings[N] | undefined],
    check?: (present: BucketSettings) => void,
  ): Promise<void> {
    if (call.principal.bucketLimits !== null) throw limitedKey();
    await this.#inTurn(call, name, async (change) => {
      const row = await this.find(call.principal, name);
      check?.(settingsOf(row));
      this.#configure(change, row, { [setting]: value });
    });
  }

  /**
   * Sets and removes some of the S3 settings in one commit, which resolves to the result of
   * `answer` for all of them. `check` throws if the present settings do not allow it. Throws the
   * errors of configure().
   */
  async configureAll<T>(
    call: Call,
    name: string,
    {
      changed,
      check,
      answer,
    }: {
      readonly changed: SettingsChange;
      readonly check: (present: BucketSettings) => void;
      readonly answer: (settings: BucketSettings) => T;
    },
  ): Promise<T> {
    if (call.principal.bucketLimits !== null) throw limitedKey();
    return this.#inTurn(call, name, async (change) => {
      const row = await this.find(call.principal, name);
      check(settingsOf(row));
      return answer(settingsOf({ settings: this.#configure(change, row, changed) }));
    });
  }

  #inTurn<T>(call: Call, name: string, build: (change: Change) => T | Promise<T>): Promise<T> {
    const key = `${call.principal.accountId}/${name}`;
    return this.#turns.run(key, () => this.#deps.changes.run(call, build));
  }

  #configure(change: Change, row: BucketRow, changed: SettingsChange): string | null {
    const { store, clock } = this.#deps;
    assertLockFits(row, changed);
    const settings = withSettings(row, changed);
    this.#assertRoom(change, row, settings);
    change.add(store.update(row, { ...row, settings }), 'retry');
    if ('dataEvents' in changed) change.forgets({ kind: 'data-events', id: row.id });
    if ('lifecycle' in changed) {
      const due = changed.lifecycle === undefined ? null : clock.now();
      change.add(store.scheduleLifecycle(row.id, due), 'retry');
    }
    return settings;
  }

  /** Settings are not counted as stored bytes: without a limit they would fill the metadata. */
  #assertRoom(
    change: Change,
    { account_id, settings }: Pick<BucketRow, 'account_id' | 'settings'>,
    after: string | null,
  ): void {
    const grown = Buffer.byteLength(after ?? '') - Buffer.byteLength(settings ?? '');
    if (grown <= 0) return;
    change.add(turnAt('accounts', account_id));
    change.add(this.#deps.store.expectRoom(account_id, grown, MAX_SETTINGS_BYTES), tooManySettings);
  }

  /** Runs `work` while uploads to the bucket are refused with `bucket_not_found`. */
  async whileLeaving<T>({ id }: BucketRow, work: () => Promise<T>): Promise<T> {
    this.#deleting.add(id);
    try {
      return await work();
    } finally {
      this.#deleting.delete(id);
    }
  }

  /** Throws `bucket_not_found` while the bucket is being emptied and deleted. */
  assertNotDeleting({ id, name }: Pick<BucketRow, 'id' | 'name'>): void {
    if (this.#deleting.has(id)) throw bucketNotFound(name);
  }

  /** Throws `bucket_not_empty` while the bucket has objects, versions or markers. */
  async removeEmpty(call: Call, name: string): Promise<Bucket> {
    if (call.principal.bucketLimits !== null) throw limitedKey();
    const { changes, store, billing, resting, clock } = this.#deps;
    return changes.run(call, async (change) => {
      const row = await this.findAny(call.principal, name);
      change.addAll(resting.restBucket(row, clock.now()), 'retry');
      // An upload at another node changes the bucket's row too.
      change.add(turnAt('buckets', row.id));
      change.add(store.delete(row.id), async () => {
        const isThere = (await store.find(row.account_id, name))?.id === row.id;
        return isThere ? notEmpty(name) : bucketNotFound(name);
      });
      change.addAll(billing.bucketDeleted(row), 'retry');
      return presentAny(row);
    });
  }
}

function switched({ versioning }: BucketRow, isOn: boolean, suspends: boolean): number {
  if (isOn) return VERSIONING.on;
  return versioning === VERSIONING.off && !suspends ? VERSIONING.off : VERSIONING.suspended;
}

function assertLockFits(bucket: BucketRow, changed: SettingsChange): void {
  if (!('lock' in changed)) return;
  if (changed.lock === undefined && settingsOf(bucket).lock !== undefined) {
    throw objectLocked('Object lock that was enabled stays enabled');
  }
  if (changed.lock === undefined || bucket.versioning === VERSIONING.on) return;
  throw objectLocked("Versioning must be 'Enabled' on the bucket to apply an Object Lock configuration");
}

function assertNoLock(bucket: BucketRow): void {
  if (settingsOf(bucket).lock === undefined) return;
  throw objectLocked(`Object lock is enabled in ${bucket.name}, so its versioning stays on`);
}

function mayEnter({ bucketLimits }: Principal, bucket: string): boolean {
  return bucketLimits === null || bucketLimits.some((limit) => limit.bucket === bucket);
}

/** Omits the settings of a damaged row, which may not be JSON. */
function presentAny(row: BucketRow): Bucket {
  return present(isSoundBucket(row) ? row : { ...row, settings: null });
}

function present(row: Omit<BucketRow, keyof BucketChecksums>): Bucket {
  return {
    name: row.name,
    region: row.region,
    versioning: row.versioning === 1,
    encryption: row.encryption === 1,
    created_at: formatTime(row.created_at),
    object_count: row.object_count,
    size: row.size_bytes,
    size_formatted: formatSize(row.size_bytes),
    version_count: row.version_count,
    total_size: row.total_bytes,
    metadata_size: row.metadata_bytes,
    object_lock: settingsOf(row).lock !== undefined,
  };
}
