/** The part of the composition root that makes object storage. */
import type { Config } from './config/config.ts';
import { JobRuns } from './metadata/job-runs.ts';
import { JobRunsStore } from './metadata/job-runs-store.ts';
import type { Metadata } from './metadata/metadata.ts';
import type { Alarms } from './platform/alarms.ts';
import type { Clock } from './platform/clock.ts';
import type { MasterKeys } from './platform/master-key.ts';
import { isWritable } from './platform/writable.ts';
import { AccessTimes } from './storage/access-times.ts';
import type { Blobs } from './storage/blobs.ts';
import { BlobsStore } from './storage/blobs-store.ts';
import { Buckets } from './storage/buckets.ts';
import { BucketStore } from './storage/buckets-store.ts';
import { Contents } from './storage/contents.ts';
import { Egress } from './storage/egress.ts';
import { Emptying } from './storage/emptying.ts';
import { HotContents } from './storage/hot-contents.ts';
import { Inspection } from './storage/inspection.ts';
import { Listing } from './storage/listing.ts';
import { Objects } from './storage/objects.ts';
import { Scrubber } from './storage/scrubber.ts';
import type { StorageBilling } from './storage/storage-billing.ts';
import { ObjectStore } from './storage/store.ts';
import { Sweeper } from './storage/sweeper.ts';

export interface StorageDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly base: {
    readonly metadata: Metadata;
    readonly blobs: Blobs;
    readonly keys: MasterKeys;
    readonly alarms: Alarms;
    /** Throws when so many bytes more must not be stored. */
    readonly assertRoom: (bytes: number) => void;
  };
  readonly billing: StorageBilling;
  /** As of SweeperDeps. */
  readonly isHeld: () => Promise<boolean>;
}

export type Storage = ReturnType<typeof buildStorage>;

export function buildStorage({ config, clock, base, billing, isHeld }: StorageDeps) {
  const { metadata, blobs, keys, alarms, assertRoom } = base;
  const wrapKey = (dataKey: Uint8Array) => keys.seal(dataKey, 'blob-key');
  const unwrapKey = (wrapped: Uint8Array) => keys.unseal(wrapped, 'blob-key');
  const garbageGraceMs = config.sweepGraceSeconds * 1000;
  const store = new ObjectStore(metadata);
  const bucketStore = new BucketStore(metadata);
  const blobsStore = new BlobsStore(metadata);
  const shared = { metadata, store, bucketStore, blobs, clock, wrapKey, unwrapKey, billing };
  const hot = new HotContents();
  const egress = new Egress(shared);
  const accessTimes = new AccessTimes(shared);
  const buckets = new Buckets({ ...shared, store: bucketStore });
  const objects = new Objects({
    ...shared,
    hot,
    buckets,
    assertRoom,
    maxObjectBytes: config.maxObjectBytes,
    garbageGraceMs,
  });
  const runs = new JobRuns({ metadata, store: new JobRunsStore(metadata) });
  return {
    accessTimes,
    egress,
    buckets,
    objects,
    contents: new Contents({ ...shared, accessTimes, hot, egress }),
    listing: new Listing({ store, buckets, accessTimes }),
    inspection: new Inspection({ objects, store, accessTimes }),
    emptying: new Emptying({ buckets, objects, store }),
    sweeper: new Sweeper({
      metadata,
      store: blobsStore,
      blobs,
      clock,
      graceMs: garbageGraceMs,
      isWritable: () => isWritable(alarms),
      isHeld,
    }),
    scrubber: new Scrubber({ metadata, store: blobsStore, blobs, runs, alarms, clock, unwrapKey }),
  };
}
