/** The foundations of the cloud: data directory, identity, metadata, object store and keys. */

import { hostname } from 'node:os';
import { BillingAccountStore } from '../billing/credit/billing-account-store.ts';
import { Tickets } from '../calls/tickets.ts';
import { Updates } from '../calls/updates.ts';
import type { Config } from '../config/config.ts';
import { listIn } from '../config/host-names.ts';
import { ungrantedMemoryOf } from '../config/registrations.ts';
import { lockDirectory } from '../drivers/directory-lock.ts';
import { ENGINE_FOLDERS } from '../drivers/engines/all-engines.ts';
import { CloudClaim } from '../drivers/host-network/cloud-claim.ts';
import { NodeBus } from '../drivers/metadata-postgresql/node-bus.ts';
import { PostgresqlMetadata } from '../drivers/metadata-postgresql/postgresql-metadata.ts';
import { SqliteMetadata } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { OfferedPorts } from '../drivers/offered-ports.ts';
import { SafeFetch } from '../drivers/safe-fetch/safe-fetch.ts';
import { Ages } from '../metadata/ages.ts';
import { Bus } from '../metadata/bus.ts';
import { assertDatabaseThere, assertNotMoved, explainUnreadable, Identity } from '../metadata/identity.ts';
import { type Metadata, withReserve, withWatchers } from '../metadata/metadata.ts';
import { SealedColumnsStore } from '../metadata/secrets/sealed-columns-store.ts';
import { Secrets } from '../metadata/secrets/secrets-store.ts';
import { StoreFigures } from '../metadata/store-figures.ts';
import { Alarms, assertWritable } from '../platform/alarms.ts';
import { SweepGuard } from '../platform/background/sweep-guard.ts';
import { openDataDirectory } from '../platform/data-directory.ts';
import { DiskSpace } from '../platform/host/disk-space.ts';
import { MasterKeys } from '../platform/master-key.ts';
import { ALONE, type Membership } from '../platform/membership.ts';
import { nodeIdIn } from '../platform/node-id.ts';
import type { Meters } from '../platform/prometheus.ts';
import { VERSION } from '../platform/version.ts';
import { DiskShares } from '../resources/disk-shares.ts';
import { HostMetrics } from '../status/host-metrics.ts';
import type { BlobStore } from '../storage/blobs/blobs.ts';
import { addressOf, openBlobs } from './blobs.ts';
import type { BuildOptions } from './cloud.ts';

/** The foundations that every part uses. */
export type Foundations = Awaited<ReturnType<typeof openFoundations>>;

type DatabaseDeps = Pick<BuildOptions, 'config' | 'clock' | 'log' | 'onFenced'> & {
  readonly alarms: Alarms;
  readonly figures: StoreFigures;
  readonly dataDir: string;
};

interface OpenedDatabase {
  readonly database: Metadata;
  readonly membership: Membership;
}

async function openDatabase({ config, clock, log, dataDir, ...deps }: DatabaseDeps): Promise<OpenedDatabase> {
  const { metadataUrl: url } = config;
  if (url === '') {
    const database = await SqliteMetadata.open({ directory: dataDir, clock, ...deps });
    return { database, membership: ALONE };
  }
  const node = nodeOf({ config, clock, dataDir });
  const onTakenOver = (detail: string) => {
    log.error(detail);
    if (node !== undefined) deps.onFenced?.();
  };
  const database = await PostgresqlMetadata.open({ url, clock, ...deps, node, onTakenOver });
  return { database, membership: database.membership };
}

/** undefined: this cloud is no cluster. */
function nodeOf({ config, clock, dataDir }: Pick<DatabaseDeps, 'config' | 'clock' | 'dataDir'>) {
  const { nodeUrl: url, nodeName, compute } = config;
  if (url === '') return undefined;
  const name = nodeName || hostname();
  return { nodeId: nodeIdIn(dataDir, clock), name, url, version: VERSION, isHost: compute === 'on' };
}

function sweepGuardOf(
  { metadataUrl, blobsUrl, ...config }: Config,
  { alarms, identity, blobs }: { alarms: Alarms; identity: Identity; blobs: BlobStore },
): SweepGuard {
  const bucket = blobsUrl === '' ? undefined : `the bucket ${addressOf({ blobsUrl, ...config }).label}`;
  return new SweepGuard({
    alarms,
    isOurs: async (folder) =>
      (await identity.isOurs(folder)) && (folder !== 'blobs' || (await blobs.isOurs())),
    rowsPlace: metadataUrl === '' ? 'metadata.db' : 'the database of CLOUDLET_METADATA_URL',
    placeOf: (folder) => (folder === 'blobs' ? bucket : undefined),
  });
}

/** Sends changes to other nodes and receives theirs. */
function joinNodes(bus: Bus, { runId, isShared }: Membership, url: string): void {
  if (isShared) bus.connect(NodeBus.open({ url, runId, receive: bus.receive.bind(bus) }));
}

function withBus(stored: Metadata) {
  const bus = new Bus();
  return { bus, metadata: withWatchers(stored, bus.changed.bind(bus)) };
}

interface SpaceDeps extends Pick<BuildOptions, 'clock' | 'log'> {
  readonly diskSpace: DiskSpace;
  readonly metadata: Metadata;
  readonly alarms: Alarms;
}

/** undefined: accounts are not limited to a share of the disk, or not with their objects. */
function sharesOf(config: Config, { clock, log, diskSpace, metadata, alarms }: SpaceDeps) {
  const percent = ungrantedMemoryOf(config);
  // If objects and their rows are stored elsewhere, the disk may be full.
  const isElsewhere = config.metadataUrl !== '' && config.blobsUrl !== '';
  const mayStore = diskSpace.assertMayStore.bind(diskSpace);
  const assertObjectSpace = isElsewhere ? () => assertWritable(alarms) : mayStore;
  if (percent === 100) return { diskShares: undefined, objectShares: undefined, assertObjectSpace };
  const accounts = new BillingAccountStore(metadata);
  const trusted = () => accounts.trusted();
  const onError = (error: unknown) =>
    log.error({ err: error }, 'counting what accounts hold on the disk failed');
  const diskShares = new DiskShares({ clock, percent, disk: () => diskSpace.figures, trusted, onError });
  return { diskShares, objectShares: config.blobsUrl === '' ? diskShares : undefined, assertObjectSpace };
}

/** Throws StartupError, or an Error with a one-line message. */
export async function openFoundations(options: BuildOptions) {
  const { config, clock, step } = options;
  const alarms = new Alarms(clock);
  const figures = new StoreFigures();
  const dataDir = openDataDirectory(config.dataDir);
  const lock = lockDirectory(dataDir);
  const isElsewhere = config.metadataUrl !== '';
  let opened: OpenedDatabase | undefined;
  try {
    if (!isElsewhere) {
      assertNotMoved(dataDir);
      assertDatabaseThere(dataDir);
    }
    const diskSpace = new DiskSpace({ clock, alarms, directory: dataDir });
    await diskSpace.start();
    opened = await step('database', () => openDatabase({ ...options, alarms, figures, dataDir }));
    const { database, membership } = opened;
    const releaseReserve = () => diskSpace.releaseReserve();
    const { metadata, bus } = withBus(withReserve(database, releaseReserve));
    const updates = new Updates({ maxPerAccount: config.maxUpdateStreams, bus });
    const ages = new Ages({ membership, clock });
    const place = { dataDir, engineFolders: ENGINE_FOLDERS, isElsewhere, hasData: membership.isHost };
    const identity = await Identity.open({ ...place, metadata, clock, releaseReserve });
    const sealed = await new SealedColumnsStore({ metadata }).holdsSealedValues();
    const { cloudId } = identity;
    const keys = MasterKeys.open({ dataDir, mayCreate: !sealed, cloudId, copyFile: config.masterKeyFile });
    const secrets = new Secrets({ metadata, keys, ages });
    const store = { config: { ...config, dataDir }, metadata, cloudId, clock, alarms, diskSpace };
    const { blobs, gauges: blobGauges } = await step('object store', () => openBlobs(store));
    const gauges = (meters: Meters) => {
      figures.register(meters);
      ages.register(meters);
      blobGauges(meters);
    };
    const hostMetrics = new HostMetrics({ clock, dataDir });
    await hostMetrics.start();
    const tickets = new Tickets({ clock, sealer: keys, metadata, membership });
    joinNodes(bus, membership, config.metadataUrl);
    return {
      membership,
      bus,
      /** Ports for users that other nodes open too; undefined: there are no other nodes. */
      ports: membership.isShared ? new OfferedPorts({ membership, alarms, clock }) : undefined,
      /** Maximum age of cache entries. */
      ages,
      lock,
      keys,
      /** Held before the first rule is added to this host. */
      claim: new CloudClaim({ cloudId, uidBase: config.vmUidBase, dataDir }),
      alarms,
      engines: {
        metadata: isElsewhere ? 'postgresql' : 'sqlite',
        storage: config.blobsUrl === '' ? 'files' : 's3',
      } as const,
      /** Called before files without a row are removed. */
      sweepGuard: sweepGuardOf(config, { alarms, identity, blobs }),
      diskSpace,
      /** Throws `out_of_space` or `read_only` if that many bytes more must not be stored. */
      assertSpace: diskSpace.assertMayStore.bind(diskSpace),
      ...sharesOf(config, { clock, log: options.log, diskSpace, metadata, alarms }),
      hostMetrics,
      linkSecret: await secrets.get('links'),
      secrets,
      outbound: new SafeFetch({ clock, allowed: listIn(config.fetchAllow) }),
      metadata,
      blobs,
      updates,
      tickets,
      /** Registers the metrics of both stores. */
      gauges,
    };
  } catch (error) {
    // A node that fails to start must not keep leases from other nodes.
    await opened?.database.close().catch(() => {});
    lock.release();
    throw explainUnreadable(dataDir, error);
  }
}

/** Call after all their users are closed. */
export async function closeFoundations(base: Foundations): Promise<void> {
  base.hostMetrics.stop();
  await base.diskSpace.stop();
  await base.blobs.close();
  await base.bus.close();
  await base.metadata.close();
  await base.claim.close();
  base.lock.release();
}
