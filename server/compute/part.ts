/** Builds compute: machines, images, consoles, metrics. */
import type { Logger } from 'pino';
import type { Tickets } from '../calls/tickets.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { RestingNamesStore } from '../metadata/resting-names-store.ts';
import { SamplesStore } from '../metadata/samples-store.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Job } from '../platform/background/jobs.ts';
import type { SweepGuard } from '../platform/background/sweep-guard.ts';
import type { Clock } from '../platform/clock.ts';
import type { AppError } from '../platform/errors.ts';
import type { Meters } from '../platform/prometheus.ts';
import type { DiskShares } from '../resources/disk-shares.ts';
import type { Announce } from '../resources/row-change.ts';
import type { Tunnels } from '../resources/tunnels.ts';
import { Turns } from '../resources/turns.ts';
import { type ChangeRoutesDeps, changeRoutes } from './changes/change-routes.ts';
import { MachineChanges } from './changes/machine-changes.ts';
import { MachineRebuilds } from './changes/machine-rebuilds.ts';
import { Consoles } from './console/console.ts';
import { type ConsoleRoutesDeps, consoleRoutes, consoleSocket } from './console/console-routes.ts';
import { ExportedMachines } from './exported-machines.ts';
import type { Hypervisor } from './hypervisor.ts';
import { ImageImports } from './images/image-imports.ts';
import { type ImageRoutesDeps, imageRoutes } from './images/image-routes.ts';
import type { ImageSources } from './images/image-sources.ts';
import { ImageStore } from './images/image-store.ts';
import { Images } from './images/images.ts';
import type { KnownImageAddresses } from './images/known-image-fetch.ts';
import type { Ingress } from './ingress.ts';
import { machineStops } from './machines/account-stops.ts';
import type { AddressPool } from './machines/addresses.ts';
import { Exposures, type ExposuresDeps } from './machines/exposures.ts';
import { LentKeys, type LentKeysDeps } from './machines/lent-keys.ts';
import { Lifecycle, type VmEventType } from './machines/lifecycle.ts';
import { MachineOrigins, type MachinePoints } from './machines/machine-origins.ts';
import { Machines, type OpenFiles } from './machines/machines.ts';
import type { GuestDisks } from './machines/point-machines.ts';
import { PowerControl } from './machines/power-control.ts';
import { Reconciler } from './machines/reconcile.ts';
import { Runs } from './machines/runs.ts';
import { Supervisor } from './machines/supervisor.ts';
import { locked, type MachineTurns } from './machines/transitions.ts';
import type { VmBilling } from './machines/vm-billing.ts';
import { VmDeleter } from './machines/vm-deleter.ts';
import { type VmRoutesDeps, vmAdminRoutes, vmRoutes } from './machines/vm-routes.ts';
import { type VmRow, VmStore } from './machines/vm-store.ts';
import { VmViews } from './machines/vm-view.ts';
import { Metrics, meterVms } from './metrics/metrics.ts';
import { type MetricsRoutesDeps, metricsRoutes } from './metrics/metrics-routes.ts';
import { Sampler, VM_SAMPLES } from './metrics/sampler.ts';
import { type PublishedPortRoutesDeps, publishedPortRoutes } from './ports/published-port-routes.ts';
import { PublishedPorts, type PublishedPortsDeps } from './ports/published-ports.ts';
import { PublishedPortsStore } from './ports/published-ports-store.ts';
import { type NetworkServices, type PrivateSwitch, syncPrivateNetworks } from './private-network.ts';
import { type SnapshotRoutesDeps, snapshotRoutes } from './snapshots/snapshot-routes.ts';
import { SnapshotStore } from './snapshots/snapshot-store.ts';
import { Snapshots } from './snapshots/snapshots.ts';
import { type SshKeyRoutesDeps, sshKeyRoutes } from './ssh-keys/ssh-key-routes.ts';
import { SshKeyStore } from './ssh-keys/ssh-key-store.ts';
import { SshKeys } from './ssh-keys/ssh-keys.ts';
import { vmEgress, vmTunnelRoute, vmTunnelSocket } from './tunnel-routes.ts';

export interface ComputeDeps {
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly ingress: Ingress;
  readonly addresses: AddressPool;
  readonly imageSources: ImageSources;
  readonly imageAddresses: KnownImageAddresses;
  readonly billing: VmBilling;
  readonly announce: Announce<VmEventType>;
  readonly sweepGuard: SweepGuard;
  /** Throws if disks and images may not grow by that many bytes. */
  readonly assertSpace: (bytes: number) => void;
  readonly onError: (id: string, what: string, error: unknown) => void;
  readonly onClosedPorts: ExposuresDeps['onClosedPorts'];
  readonly descriptors: OpenFiles;
  readonly published?: ExposuresDeps['published'];
  readonly services: NetworkServices;
  readonly points: MachinePoints;
  /** See Lifecycle. */
  readonly ungrantedMemoryPercent: number;
  /** undefined: accounts are not limited to a share of the disk. */
  readonly diskShares?: DiskShares | undefined;
  readonly outbound: boolean;
  readonly maxImageBytes: number;
  /** ms. */
  readonly graceMs: number;
  readonly orphanGraceMs: number;
}

/** Constructs the parts; nothing runs until `supervisor.start()`. */
export function assembleCompute(given: ComputeDeps) {
  const { metadata } = given;
  const store = new VmStore(metadata);
  const changes = new Changes({ metadata });
  const imageStore = new ImageStore(metadata);
  const { imageSources: sources, imageAddresses: addresses, maxImageBytes: maxBytes } = given;
  const images = new Images({ store: imageStore, addresses });
  const imports = new ImageImports({ ...given, changes, store: imageStore, sources, addresses, maxBytes });
  const exposures = new Exposures({ ...given, store, changes });
  const base = { ...given, store, changes, images, exposures, views: new VmViews(given) };
  const origins = new MachineOrigins({ ...given, store });
  const sshKeys = new SshKeys({ ...base, keyStore: new SshKeyStore(metadata) });
  const machines = new Machines({ ...base, origins, sshKeys });
  const turns: MachineTurns = new Turns({ find: (id) => store.find(id), locked });
  const lifecycle = new Lifecycle(base);
  const runs = new Runs({ ...base, lifecycle });
  const parts = { ...base, machines, turns, lifecycle, runs };
  const power = new PowerControl(parts);
  const deleter = new VmDeleter({ ...parts, resting: new RestingNamesStore(metadata) });
  const reconciler = new Reconciler({ ...parts, deleter });
  const supervisor = new Supervisor({ ...parts, reconciler });
  const accountStops = machineStops({ ...parts, power, deleter });
  const machineChanges = new MachineChanges(parts);
  const machineRebuilds = new MachineRebuilds(parts);
  given.diskShares?.count(() => diskOf(parts));
  const snapshots = new Snapshots({ ...parts, snapshotStore: new SnapshotStore(metadata) });
  return {
    store,
    images,
    imports,
    machines,
    origins,
    turns,
    lifecycle,
    runs,
    exposures,
    power,
    machineChanges,
    machineRebuilds,
    diskShares: given.diskShares,
    snapshots,
    sshKeys,
    deleter,
    reconciler,
    supervisor,
    accountStops,
    addresses: given.addresses,
    billing: given.billing,
    hypervisor: given.hypervisor,
  };
}

const WAITING = 'machines_wait_for_room';
const SCARCE = 'machines_may_not_grow';
const MACHINES_MAY_NOT_GROW =
  'The disk is nearly full: virtual machines are not created, grown or copied, and the fastest-growing ones are paused, to leave space for everything else';
const FILES = 'few_files_left';
/** Too few free files to create a machine. */
const FEW_FILES = 16;
const RAISE = 'Raise the limit (LimitNOFILE= in the service, or ulimit -n), or stop virtual machines';
const SAMPLE_MS = 5000;
const CHECK_MS = 15_000;
const HALT_CHECK_MS = 250;
const FLUSH_MS = 5000;
const CONNECT_MS = 1000;
/** A tunnel outlives its machine or database by at most this. */
const TUNNEL_CHECK_MS = 2000;

/** Host resources of machines besides the hypervisor. */
export interface Host {
  readonly hypervisor: Hypervisor;
  readonly disks: GuestDisks;
  /** Machines paused because the disk is full. */
  readonly waits: {
    readonly count: number;
    readonly isScarce: boolean;
    /** There is nothing to update. */
    readonly mayRest: boolean;
    update(ownersOf: () => Promise<ReadonlyMap<string, number>>, over: ReadonlySet<string>): Promise<unknown>;
  };
  /** Firewall rules that isolate this host from machines. */
  readonly networks: readonly { readonly refusal: AppError | null | undefined; ensure(): Promise<unknown> }[];
  /** Removes leftovers of killed clouds on this host. Called when the addresses of machines are claimed. */
  readonly sweepHost: () => Promise<unknown>;
  readonly descriptors: OpenFiles & { readonly limit: number; hasFree(count: number): boolean };
  close(): Promise<void>;
}

export function computeRoutes(
  deps: VmRoutesDeps &
    ChangeRoutesDeps &
    SnapshotRoutesDeps &
    SshKeyRoutesDeps &
    ImageRoutesDeps &
    MetricsRoutesDeps &
    ConsoleRoutesDeps &
    PublishedPortRoutesDeps,
) {
  return [
    ...vmRoutes(deps),
    ...changeRoutes(deps),
    ...snapshotRoutes(deps),
    ...sshKeyRoutes(deps),
    ...vmAdminRoutes(deps),
    ...imageRoutes(deps),
    ...metricsRoutes(deps),
    ...consoleRoutes(deps),
    vmTunnelRoute(deps),
    ...publishedPortRoutes(deps),
  ];
}

function watchFiles({ descriptors }: Host, alarms: Alarms): void {
  const { limit } = descriptors;
  const detail = `Nearly all of ${limit} file descriptors are in use: no virtual machine can be created or started`;
  if (descriptors.hasFree(FEW_FILES)) alarms.clear(FILES);
  else alarms.raise(FILES, detail, RAISE);
}

/** Restores the rules after another program flushed them. While no machine runs, they protect nothing. */
async function guardNetworks(host: Host, log: Logger, store: VmStore): Promise<void> {
  if ((await store.listRunning()).length > 0) await placeRules(host, log);
}

async function placeRules({ networks }: Host, log: Logger): Promise<void> {
  for (const network of networks) {
    const before = network.refusal?.message;
    await network.ensure().catch(({ message, hint }: AppError) => {
      const say = `firewall rules of virtual machines are missing: ${message}. Fix: ${hint}`;
      if (message !== before) log.warn(say);
    });
  }
}

interface HaltDeps {
  readonly store: VmStore;
  readonly diskShares?: Pick<DiskShares, 'over'> | undefined;
}

/** Bytes of disks and snapshots by account. */
async function diskOf({ store, hypervisor }: Pick<ComputeDeps, 'hypervisor'> & { readonly store: VmStore }) {
  const taken = new Map<number, number>();
  for (const { vm_id, account_id } of await store.owners())
    taken.set(account_id, (taken.get(account_id) ?? 0) + hypervisor.snapshots.takenBytes(vm_id));
  return taken;
}

/** Machines that may not grow for now. */
async function machinesOver({ store, diskShares }: HaltDeps): Promise<ReadonlySet<string>> {
  const over = (await diskShares?.over()) ?? new Set();
  if (over.size === 0) return new Set();
  const owners = await store.owners();
  return new Set(owners.filter(({ account_id }) => over.has(account_id)).map(({ vm_id }) => vm_id));
}

async function haltWaiting({ waits }: Host, alarms: Alarms, parts: HaltDeps): Promise<void> {
  const { store } = parts;
  const ownersOf = async () => {
    const rows = await store.listConnected();
    return new Map(rows.map(({ vm_id, account_id }) => [vm_id, account_id]));
  };
  await waits.update(ownersOf, await machinesOver(parts));
  const fix = 'Free up space on the disk of the data directory; the machines resume automatically';
  if (waits.isScarce) alarms.raise(SCARCE, MACHINES_MAY_NOT_GROW, fix);
  else alarms.clear(SCARCE);
  if (waits.count === 0) return alarms.clear(WAITING);
  alarms.raise(WAITING, `${waits.count} virtual machines are paused: the disk is nearly full`, fix);
}

function every(name: string, everyMs: number, run: () => Promise<unknown>): Job {
  return { name, everyMs, per: 'host', run };
}

/** Builds compute with its jobs, which run once it is started. */
export function computePart(
  deps: ComputeDeps & {
    readonly host: Host;
    readonly alarms: Alarms;
    readonly log: Logger;
    readonly apiUrl: () => string;
    readonly dataUrl: () => string;
    readonly publishing: Pick<PublishedPortsDeps, 'listeners' | 'everywhere' | 'rules' | 'shownHost'>;
    readonly tunnels: Tunnels;
    readonly tickets: Tickets;
    readonly privateNetworks: PrivateSwitch;
    readonly isCurrent: LentKeysDeps['isCurrent'];
  },
) {
  const { metadata, clock, hypervisor, ingress, orphanGraceMs, host, alarms, log, tunnels, privateNetworks } =
    deps;
  const changes = new Changes({ metadata });
  const sent = vmEgress({ ...deps, changes });
  const find: Machines['findFor'] = (principal, vmId) => machines.findFor(principal, vmId);
  const open = (row: VmRow) => parts.exposures.openPublished(row);
  const machine = (vmId: string) => parts.store.find(vmId);
  const resting = new RestingNamesStore(metadata);
  const own = { changes, store: new PublishedPortsStore(metadata), resting, find, machine, open, sent };
  const published = new PublishedPorts({ ...deps, ...deps.publishing, ...own });
  const parts = assembleCompute({ ...deps, published });
  const { store, machines, imports, supervisor, accountStops, addresses } = parts;
  const samples = new SamplesStore(metadata, VM_SAMPLES);
  const running = () => store.listRunning();
  const sampler = new Sampler({ clock, hypervisor, ingress, metadata, samples, running });
  const metrics = new Metrics({ clock, store: samples, sampler, find });
  const consoles = new Consoles({ hypervisor });
  const guard = () => guardNetworks(host, log, store);
  const connectAll = () => syncPrivateNetworks(store, privateNetworks);
  const flushSent = () => {
    published.countSent();
    return sent.flush();
  };
  const sweepMs = Math.max(orphanGraceMs, CHECK_MS);
  const lentKeys = new LentKeys({ ...deps, changes, find });
  const services = { ...parts, metrics, find, consoles, tickets: deps.tickets, published, lentKeys };
  const routeDeps = { ...services, hypervisor, billing: deps.billing, apiUrl: deps.apiUrl };
  return {
    accountStops,
    resources: machines.resources,
    exported: new ExportedMachines({ machines, disks: host.disks }),
    routes: computeRoutes(routeDeps),
    sockets: [consoleSocket(routeDeps), vmTunnelSocket({ ...deps, ...parts, changes, find, sent })],
    gauges: (meters: Meters) => meterVms(meters, { sampler, counts: async () => store.counts() }),
    hasMachines: async () => (await store.counts()).length > 0,
    countRunning: async () => (await store.listRunning()).length,
    jobs: [
      every('block connections from machines to this host', CHECK_MS, guard),
      {
        ...every('pause machines on a full disk', HALT_CHECK_MS, () => haltWaiting(host, alarms, parts)),
        mayRest: () => host.waits.mayRest,
      },
      every('watch for open files', CHECK_MS, async () => watchFiles(host, alarms)),
      every('sample machines', SAMPLE_MS, () => sampler.tick()),
      every('connect machines to their private networks', CONNECT_MS, connectAll),
      every('store egress of machines', FLUSH_MS, flushSent),
      every('end tunnels without a target', TUNNEL_CHECK_MS, () => tunnels.check()),
      every('supervise machines', CHECK_MS, () => supervisor.check()),
      every('sweep machines without a row', sweepMs, () => supervisor.sweepOrphans()),
    ],
    start: () => {
      supervisor.start();
      void addresses.claimTaken().then((blocks) => {
        if (blocks.length > 0)
          log.warn({ blocks }, 'another cloud on this host uses the same virtual machine addresses');
        return host.sweepHost();
      });
      void imports.start().catch((error) => log.error({ err: error }, 'removing incomplete imports failed'));
      void placeRules(host, log);
      // Detects the accelerator in the background.
      void hypervisor.readiness();
    },
    stop: () => privateNetworks.stop(),
    /** Detaches from machines, which keep running. */
    close: async () => {
      await imports.close();
      await supervisor.close();
      consoles.close();
      await published.close();
      await privateNetworks.close();
      await ingress.closeAll();
      await host.close();
    },
    flush: flushSent,
    lentKeys,
    named: (hostname: string) => published.named(hostname),
  };
}
