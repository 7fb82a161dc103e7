/** Creates the services that REST and S3 share, so that both see the same objects. */
import type { Ages } from '../../metadata/ages.ts';
import type { Bus } from '../../metadata/bus.ts';
import { type Changes, WriteBehind } from '../../metadata/change.ts';
import type { Metadata } from '../../metadata/metadata.ts';
import { RestingNamesStore } from '../../metadata/resting-names-store.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Sealer } from '../../platform/master-key.ts';
import type { BlobStore } from '../blobs/blobs.ts';
import { BucketEmptier } from '../buckets/bucket-emptier.ts';
import { BucketSql } from '../buckets/bucket-sql.ts';
import { Buckets } from '../buckets/buckets.ts';
import type { DataKeys } from '../keys/encryption.ts';
import { NamedKeySql } from '../keys/named-key-sql.ts';
import { NamedKeys } from '../keys/named-keys.ts';
import { Listing } from '../listing/listing.ts';
import { NameListing } from '../listing/name-listing.ts';
import { PageEndSql } from '../listing/page-end-sql.ts';
import type { StorageBilling } from '../storage-billing.ts';
import { PartUploadSql } from '../uploads/part-upload-sql.ts';
import { PartUploads } from '../uploads/part-uploads.ts';
import { Downloads } from './downloads.ts';
import { HotContents } from './hot-contents.ts';
import { NamedSql } from './named-sql.ts';
import { ObjectChanges } from './object-changes.ts';
import { lockClock } from './object-lock.ts';
import { ObjectSql } from './object-sql.ts';
import { Objects } from './objects.ts';
import { Relocations } from './relocations.ts';
import { Removals } from './removals.ts';
import { StoredEncryption } from './stored-encryption.ts';

export interface ObjectServicesDeps {
  readonly metadata: Metadata;
  readonly changes: Changes;
  readonly bus: Pick<Bus, 'onForget'>;
  readonly ages: Ages;
  readonly clock: Clock;
  readonly blobs: BlobStore;
  readonly billing: StorageBilling;
  readonly sealer: Sealer;
  readonly dataKeys: DataKeys;
  /** Throws `out_of_space` unless that many more bytes may be stored. */
  readonly assertSpace: (bytes: number) => void;
  readonly maxObjectBytes: number;
  readonly maxInlineBytes?: number | undefined;
  /** Time for which the file of a removed blob is kept, for running downloads. */
  readonly garbageGraceMs: number;
  /** Called with the row id of a blob whose bytes are damaged. */
  readonly onDamaged: (blob: number) => void;
  readonly onDamagedRow: (version: number) => void;
  readonly onDamagedBucket: (bucket: number) => void;
  /** The steady time: see object-lock.ts. */
  readonly steady: { readonly now: () => number };
}

export type ObjectServices = ReturnType<typeof objectServices>;

export function objectServices(deps: ObjectServicesDeps) {
  const { metadata, changes, billing, dataKeys } = deps;
  const store = new ObjectSql(metadata);
  const partUploadSql = new PartUploadSql(metadata);
  const hot = new HotContents();
  deps.bus.onForget('data-events', () => hot.clear());
  deps.bus.onForget('named-key', (id) => dataKeys.keyring.forget(id));
  // Facts of downloads that are written later.
  const accessTimes = new WriteBehind<number, number>({
    changes,
    statementOf: (version, at) => store.setLastAccessed(version, at),
  });
  const egress = new WriteBehind<number, number>({
    changes,
    statementOf: (bucketId, bytes) => billing.bytesSent(bucketId, bytes),
    join: (earlier, later) => earlier + later,
  });
  const lockTime = lockClock(deps.clock, deps.steady);
  const shared = { ...deps, store, hot, lockTime };
  const resting = new RestingNamesStore(metadata);
  const buckets = new Buckets({ ...shared, store: new BucketSql(metadata), resting });
  const objectChanges = new ObjectChanges(shared);
  const objects = new Objects({ ...shared, buckets, objectChanges });
  const removals = new Removals({ ...shared, buckets, objectChanges, objects });
  const partUploads = new PartUploads({
    ...shared,
    store: partUploadSql,
    objectStore: store,
    buckets,
    objects,
  });
  const storedEncryption = new StoredEncryption(dataKeys.keyring, partUploads);
  const downloads = new Downloads({
    ...shared,
    named: new NamedSql(metadata),
    partUploads: partUploadSql,
    accessTimes,
    egress,
  });
  const relocating = {
    objects,
    removals,
    objectChanges,
    downloads,
    buckets,
    store,
    stored: storedEncryption,
  };
  return {
    lockTime,
    storedEncryption,
    relocations: new Relocations(relocating),
    store,
    partUploadSql,
    accessTimes,
    egress,
    buckets,
    objects,
    removals,
    partUploads,
    dataKeys,
    namedKeys: new NamedKeys({ ...deps, store: new NamedKeySql(metadata) }),
    bucketEmptier: new BucketEmptier({ buckets, removals, partUploads, store, lockTime }),
    names: new NameListing({ store, partUploadSql, pageEndSql: new PageEndSql(metadata) }),
    listing: new Listing({ store, buckets, accessTimes }),
    downloads,
  };
}
