/** Makes accounts, object storage and webhooks, and the jobs that run by the clock. */

import type { Logger } from 'pino';
import { AccessKeys } from '../accounts/access-keys.ts';
import { type AccountsDeps as AccountDeps, Accounts } from '../accounts/accounts.ts';
import { Administration, type AdministrationDeps } from '../accounts/administration.ts';
import { ApiKeys } from '../accounts/api-keys.ts';
import { Authenticator } from '../accounts/authenticator.ts';
import { LoginThrottle } from '../accounts/login-throttle.ts';
import { Passwords, readBlocklist } from '../accounts/passwords.ts';
import { Sessions } from '../accounts/sessions.ts';
import { SessionStore } from '../accounts/sessions-store.ts';
import { SetupLinks } from '../accounts/setup-links.ts';
import { SetupLinkStore } from '../accounts/setup-links-store.ts';
import { AccountStore } from '../accounts/store.ts';
import { transferStatements } from '../billing/ledger/ledger.ts';
import type { Idempotency } from '../calls/idempotency.ts';
import type { Operations } from '../calls/operations.ts';
import type { Config } from '../config/config.ts';
import { damageIn } from '../drivers/metadata-sqlite/integrity.ts';
import { Changes } from '../metadata/change.ts';
import { JobRuns } from '../metadata/job-runs-store.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { WriteBehind } from '../metadata/write-behind.ts';
import type { Alarms } from '../platform/alarms.ts';
import { isWritable } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import type { Jobs } from '../platform/jobs.ts';
import type { MasterKeys } from '../platform/master-key.ts';
import type { Outbound } from '../platform/outbound.ts';
import type { SweepGuard } from '../platform/sweep-guard.ts';
import { Archives } from '../storage/archives.ts';
import { BlobSql } from '../storage/blob-sql.ts';
import type { BlobStore } from '../storage/blobs.ts';
import { BrowseSql } from '../storage/browse-sql.ts';
import { Browsing } from '../storage/browsing.ts';
import { BucketEmptier } from '../storage/bucket-emptier.ts';
import { BucketSql } from '../storage/bucket-sql.ts';
import { Buckets } from '../storage/buckets.ts';
import { Downloads } from '../storage/downloads.ts';
import { HotContents } from '../storage/hot-contents.ts';
import { Listing } from '../storage/listing.ts';
import { ObjectInspector } from '../storage/object-inspector.ts';
import { ObjectSql } from '../storage/object-sql.ts';
import { Objects } from '../storage/objects.ts';
import { Scrubber } from '../storage/scrubber.ts';
import type { StorageBilling } from '../storage/storage-billing.ts';
import { Sweeper } from '../storage/sweeper.ts';
import { Deliveries } from '../webhooks/deliveries.ts';
import { DeliveryStore } from '../webhooks/deliveries-store.ts';
import { Dispatcher } from '../webhooks/dispatcher.ts';
import { Retention } from '../webhooks/retention.ts';
import { WebhookStore } from '../webhooks/store.ts';
import { Webhooks } from '../webhooks/webhooks.ts';

export interface AccountsDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly base: { readonly metadata: Metadata; readonly keys: MasterKeys };
  readonly credits: Pick<AdministrationDeps, 'creditsAdded' | 'accountChanged' | 'reactivation'> &
    Pick<AccountDeps, 'balance'>;
}

export type AccountParts = Awaited<ReturnType<typeof buildAccounts>>;

export async function buildAccounts({ config, clock, base, credits }: AccountsDeps) {
  const { metadata, keys } = base;
  const store = new AccountStore({ reads: metadata });
  const changes = new Changes({ metadata });
  const authenticator = new Authenticator({ store, changes, clock });
  const passwords = new Passwords({ blocklist: readBlocklist(config.passwordBlocklist) });
  const throttle = new LoginThrottle({ clock, freeFailures: config.loginFailures });
  const shared = {
    store,
    changes,
    clock,
    sealer: keys,
    cache: authenticator,
    passwords,
    throttle,
    transfer: transferStatements,
    ...credits,
  };
  const apiKeys = new ApiKeys(shared);
  const accessKeys = new AccessKeys({ ...shared, maxKeys: config.maxAccessKeys });
  const accounts = new Accounts({ ...shared, apiKeys, signupMicro: config.signupCredits * 1_000_000 });
  const sessions = new Sessions({ ...shared, apiKeys, sessionStore: new SessionStore({ reads: metadata }) });
  const administration = new Administration({ ...shared, accounts, apiKeys, authenticator });
  const setupLinks = new SetupLinks({
    ...shared,
    setupLinkStore: new SetupLinkStore({ reads: metadata }),
    accounts,
  });
  if (config.adminKey !== '') await administration.ensureAdminKey(config.adminKey);
  const linkKeys = {
    currentId: (accountId: number) => apiKeys.currentId(accountId),
    holderOf: (keyId: string) => authenticator.holderOf(keyId),
  };
  return { accounts, apiKeys, accessKeys, sessions, administration, setupLinks, authenticator, linkKeys };
}

export interface StorageDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly base: {
    readonly metadata: Metadata;
    readonly blobs: BlobStore;
    readonly keys: MasterKeys;
    readonly alarms: Alarms;
    readonly sweepGuard: SweepGuard;
    /** Throws when so many bytes more must not be stored. */
    readonly assertRoom: (bytes: number) => void;
  };
  readonly billing: StorageBilling;
  /** As of SweeperDeps. */
  readonly isHeld: () => Promise<boolean>;
}

export type Storage = ReturnType<typeof buildStorage>;

/** What a download changes. */
export function writtenLater({
  changes,
  store,
  billing,
}: {
  readonly changes: Changes;
  readonly store: ObjectSql;
  readonly billing: Pick<StorageBilling, 'bytesSent'>;
}) {
  return {
    accessTimes: new WriteBehind<number, number>({
      changes,
      statementOf: (version, at) => store.setLastAccessed(version, at),
    }),
    egress: new WriteBehind<number, number>({
      changes,
      statementOf: (bucketId, bytes) => billing.bytesSent(bucketId, bytes),
      join: (earlier, later) => earlier + later,
    }),
  };
}

export function buildStorage({ config, clock, base, billing, isHeld }: StorageDeps) {
  const { metadata, blobs, keys, alarms, assertRoom } = base;
  const wrapKey = (dataKey: Uint8Array) => keys.seal(dataKey, 'blob-key');
  const unwrapKey = (wrapped: Uint8Array) => keys.unseal(wrapped, 'blob-key');
  const garbageGraceMs = config.sweepGraceSeconds * 1000;
  const store = new ObjectSql(metadata);
  const bucketSql = new BucketSql(metadata);
  const blobSql = new BlobSql(metadata);
  const changes = new Changes({ metadata });
  const shared = { changes, store, blobs, clock, wrapKey, unwrapKey, billing };
  const hot = new HotContents();
  const { accessTimes, egress } = writtenLater(shared);
  const buckets = new Buckets({ ...shared, store: bucketSql });
  const objects = new Objects({
    ...shared,
    hot,
    buckets,
    assertRoom,
    maxObjectBytes: config.maxObjectBytes,
    garbageGraceMs,
  });
  const runs = new JobRuns(metadata);
  const listing = new Listing({ store, buckets, accessTimes });
  const browseSql = new BrowseSql(metadata);
  const metadataDamage = () => damageIn(config.dataDir);
  const scrubbed = { blobs, runs, alarms, clock, unwrapKey, metadataDamage };
  const scrubber = new Scrubber({ changes, store: blobSql, ...scrubbed });
  // What cannot be marked now is found by the next scrub.
  const onDamaged = (version: number) => void scrubber.noteDamaged(version).catch(() => {});
  const downloads = new Downloads({ ...shared, accessTimes, hot, egress, onDamaged });
  return {
    accessTimes,
    egress,
    buckets,
    objects,
    downloads,
    listing,
    browsing: new Browsing({ store: browseSql, listing, accessTimes }),
    archives: new Archives({ store: browseSql, listing, downloads, maxFiles: config.maxArchiveFiles }),
    objectInspector: new ObjectInspector({ objects, store, accessTimes }),
    bucketEmptier: new BucketEmptier({ buckets, objects, store }),
    sweeper: new Sweeper({
      changes,
      store: blobSql,
      blobs,
      clock,
      sweepGuard: base.sweepGuard,
      graceMs: garbageGraceMs,
      isWritable: () => isWritable(alarms),
      isHeld,
    }),
    scrubber,
  };
}

export interface WebhookParts {
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: { readonly metadata: Metadata; readonly keys: MasterKeys; readonly outbound: Outbound };
}

/** Makes the parts; nothing is sent until `startWebhooks`. */
export function buildWebhooks({ clock, log, base }: WebhookParts) {
  const { metadata, outbound } = base;
  const shared = {
    changes: new Changes({ metadata }),
    clock,
    sealer: base.keys,
    outbound,
    webhookStore: new WebhookStore(metadata),
    deliveryStore: new DeliveryStore(metadata),
    onError: (what: string, error: unknown) => log.error({ err: error }, what),
  };
  const dispatcher = new Dispatcher(shared);
  const webhooks = new Webhooks(shared);
  const deliveries = new Deliveries({ ...shared, webhooks, wake: () => dispatcher.wake() });
  return { webhooks, deliveries, dispatcher, sweeper: new Retention(shared) };
}

const LOOK_MS = 1000;
const SWEEP_MS = 3_600_000;

/** Begins to send; only a server does, no operator's command. */
export function startWebhooks(
  { dispatcher, sweeper }: Pick<ReturnType<typeof buildWebhooks>, 'dispatcher' | 'sweeper'>,
  jobs: Jobs,
): void {
  dispatcher.start();
  jobs.every('deliver webhooks', LOOK_MS, async () => dispatcher.wake());
  jobs.every('sweep webhooks', SWEEP_MS, () => sweeper.sweep());
}

interface JobParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly accounts: AccountParts;
  readonly idempotency: Idempotency;
  readonly operations: Operations;
}

const FLUSH_MS = 5000;
const HOUR_MS = 3_600_000;

/** What is done again and again while the cloud runs. */
export async function startJobs(
  jobs: Jobs,
  { config, clock, storage, accounts, idempotency, operations }: JobParts,
): Promise<void> {
  const graceMs = config.sweepGraceSeconds * 1000;
  jobs.every('flush access times', FLUSH_MS, () => storage.accessTimes.flush());
  jobs.every('flush bytes sent', FLUSH_MS, () => storage.egress.flush());
  jobs.every('flush key use', FLUSH_MS, () => accounts.authenticator.flush());
  jobs.every('sweep garbage', Math.min(graceMs, 60_000), () => storage.sweeper.sweepGarbage());
  jobs.every('sweep orphans', graceMs * 6, () => storage.sweeper.sweepOrphans());
  jobs.every('sweep sessions', HOUR_MS, () => accounts.sessions.sweep());
  jobs.every('sweep idempotency keys', HOUR_MS, () => idempotency.sweep());
  jobs.every('sweep operations', HOUR_MS, () => operations.sweep());
  await storage.scrubber.start();
  if (config.scrubDays === 0) return;
  jobs.every('scrub', HOUR_MS, async () => {
    const finishedAt = await storage.scrubber.lastFinishedAt();
    if (finishedAt !== null && clock.now() - finishedAt < config.scrubDays * 24 * HOUR_MS) return;
    await storage.scrubber.run({ bytesPerSecond: config.scrubBytesPerSecond, fresh: false });
  });
}

/** What is written now and then, written for the last time. */
export async function flushAll(log: Logger, parts: readonly { flush(): Promise<unknown> }[]): Promise<void> {
  for (const part of parts) {
    try {
      await part.flush();
    } catch (error) {
      // Figures of the last seconds are not worth a failed stop.
      log.warn({ err: error }, 'figures of the last seconds were not stored');
    }
  }
}
