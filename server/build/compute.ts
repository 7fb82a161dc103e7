/** Makes compute: engine, addresses, machines, console, metrics. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { Consoles } from '../compute/console/console.ts';
import { ConsoleTickets } from '../compute/console/console-tickets.ts';
import type { Hypervisor } from '../compute/hypervisor.ts';
import { ImageImports } from '../compute/images/image-imports.ts';
import { ImageSources } from '../compute/images/image-sources.ts';
import { ImageStore } from '../compute/images/image-store.ts';
import { Images } from '../compute/images/images.ts';
import type { Ingress } from '../compute/ingress.ts';
import { AccountStops } from '../compute/machines/account-stops.ts';
import { Actions } from '../compute/machines/actions.ts';
import { AddressPool } from '../compute/machines/addresses.ts';
import { Exposures, type ExposuresDeps } from '../compute/machines/exposures.ts';
import type { Announce } from '../compute/machines/lifecycle.ts';
import { Lifecycle } from '../compute/machines/lifecycle.ts';
import { Machines, type OpenFiles } from '../compute/machines/machines.ts';
import { PowerControl } from '../compute/machines/power-control.ts';
import { Reconciler } from '../compute/machines/reconcile.ts';
import { Runs } from '../compute/machines/runs.ts';
import { Supervisor } from '../compute/machines/supervisor.ts';
import type { VmBilling } from '../compute/machines/vm-billing.ts';
import { VmDeleter } from '../compute/machines/vm-deleter.ts';
import { VmStore } from '../compute/machines/vm-store.ts';
import { VmViews } from '../compute/machines/vm-view.ts';
import { Metrics } from '../compute/metrics/metrics.ts';
import { Sampler, VM_SAMPLES } from '../compute/metrics/sampler.ts';
import { meterVms } from '../compute/metrics/vm-series.ts';
import type { Config } from '../config/config.ts';
import { BridgeIngress } from '../drivers/bridge-ingress/bridge-ingress.ts';
import { GuestBridge } from '../drivers/host-network/guest-bridge.ts';
import { OutboundGuard } from '../drivers/host-network/outbound-guard.ts';
import { AddressGuard } from '../drivers/loopback-ingress/address-guard.ts';
import { LoopbackIngress } from '../drivers/loopback-ingress/loopback-ingress.ts';
import { UIDS } from '../drivers/qemu/guest-folders.ts';
import { QemuHypervisor } from '../drivers/qemu/qemu-hypervisor.ts';
import { TINY_FOLDER, tinyIn } from '../drivers/qemu/tiny-image.ts';
import { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import { SamplesStore } from '../metadata/samples-store.ts';
import type { Alarms } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import { Descriptors } from '../platform/descriptors.ts';
import type { DiskRoom } from '../platform/disk-room.ts';
import type { AppError } from '../platform/errors.ts';
import type { Jobs } from '../platform/jobs.ts';
import { type NoOtherUsers, whyNoOtherUsers } from '../platform/other-users.ts';
import type { Outbound } from '../platform/outbound.ts';
import type { Meters } from '../platform/prometheus.ts';
import type { SweepGuard } from '../platform/sweep-guard.ts';
import { eventStatements } from '../webhooks/events.ts';

export interface ComputeParts {
  readonly metadata: Metadata;
  readonly clock: Clock;
  readonly store: VmStore;
  readonly hypervisor: Hypervisor;
  readonly ingress: Ingress;
  readonly addresses: AddressPool;
  readonly imageSources: ImageSources;
  readonly billing: VmBilling;
  readonly announce: Announce;
  readonly sweepGuard: SweepGuard;
  /** Throws when so many bytes more must not be stored. */
  readonly assertRoom: (bytes: number) => void;
  readonly onError: (id: string, what: string, error: unknown) => void;
  readonly onClosedPorts: ExposuresDeps['onClosedPorts'];
  readonly descriptors: OpenFiles;
  readonly outbound: boolean;
  readonly maxImageBytes: number;
  /** ms. */
  readonly graceMs: number;
  readonly orphanGraceMs: number;
}

/** Makes the parts; nothing runs until `supervisor.start()`. */
export function assembleCompute(given: ComputeParts) {
  const { metadata } = given;
  const changes = new Changes({ metadata });
  const imageStore = new ImageStore(metadata);
  const images = new Images({ store: imageStore });
  const { imageSources: sources, maxImageBytes: maxBytes } = given;
  const imports = new ImageImports({ ...given, changes, store: imageStore, sources, maxBytes });
  const exposures = new Exposures({ ...given, changes });
  const base = { ...given, changes, images, exposures, views: new VmViews(given) };
  const machines = new Machines(base);
  const actions = new Actions();
  const lifecycle = new Lifecycle(base);
  const runs = new Runs({ ...base, lifecycle });
  const parts = { ...base, machines, actions, lifecycle, runs };
  const power = new PowerControl(parts);
  const deleter = new VmDeleter(parts);
  const reconciler = new Reconciler({ ...parts, deleter });
  const supervisor = new Supervisor({ ...parts, reconciler });
  const accountStops = new AccountStops({ ...parts, power, deleter });
  return {
    images,
    imports,
    machines,
    actions,
    lifecycle,
    runs,
    exposures,
    power,
    deleter,
    reconciler,
    supervisor,
    accountStops,
    addresses: given.addresses,
    billing: given.billing,
    hypervisor: given.hypervisor,
  };
}

export interface ComputeDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly meters: Meters;
  readonly base: {
    readonly metadata: Metadata;
    /** Throws when so many bytes more must not be stored. */
    readonly assertRoom: (bytes: number) => void;
    readonly room: DiskRoom;
    readonly alarms: Alarms;
    readonly outbound: Outbound;
    readonly sweepGuard: SweepGuard;
  };
  readonly billing: VmBilling;
}

const GIB = 2 ** 30;

export type Compute = Awaited<ReturnType<typeof buildCompute>>;

/** Makes the parts; nothing runs until `supervisor.start()`. */
export async function buildCompute(deps: ComputeDeps) {
  const { config, clock, log, meters, billing } = deps;
  const { metadata, assertRoom } = deps.base;
  const store = new VmStore(metadata);
  const noUsers = whyNoOtherUsers({ first: config.vmUidBase, count: UIDS.count }, config.dataDir);
  const { guard, addressGuard, bridge } = buildNetwork(config, noUsers);
  const hypervisor = buildHypervisor(deps, { noUsers, guard, bridge });
  const descriptors = new Descriptors({ clock, reserve: config.fileReserve });
  const ingress =
    bridge === null
      ? new LoopbackIngress({ clock, descriptors, guard: addressGuard })
      : new BridgeIngress({ clock });
  const taken = await store.addresses();
  const addresses = new AddressPool({ network: config.vmPool, taken, host: ingress });
  if (bridge !== null) addresses.markTaken(bridge.gateway);
  const imageSources = buildImageSources(config, deps.base.outbound);
  const parts = assembleCompute({
    metadata,
    assertRoom,
    clock,
    store,
    hypervisor,
    ingress,
    addresses,
    billing,
    imageSources,
    announce: eventStatements,
    sweepGuard: deps.base.sweepGuard,
    onError: (id, what, error) => log.error({ id, err: error }, what),
    onClosedPorts: (vmId, ports) => log.warn({ vm_id: vmId, ports }, 'ports that stay closed'),
    descriptors,
    outbound: config.vmOutbound === 'on',
    maxImageBytes: config.imageMaxGb * GIB,
    graceMs: config.vmGraceSeconds * 1000,
    orphanGraceMs: config.sweepGraceSeconds * 1000,
  });
  const { machines, power, deleter, images, imports, supervisor, accountStops } = parts;
  const metricsStore = new SamplesStore(metadata, VM_SAMPLES);
  const running = () => store.listRunning();
  const sampler = new Sampler({ clock, hypervisor, ingress, metadata, store: metricsStore, running });
  const find: Machines['findFor'] = (principal, vmId) => machines.findFor(principal, vmId);
  const metrics = new Metrics({ clock, store: metricsStore, sampler, find });
  meterVms(meters, sampler);
  const consoles = new Consoles({ hypervisor });
  const tickets = new ConsoleTickets(clock);
  const own = { machines, power, deleter, images, imports, metrics, find, consoles, tickets };
  return {
    imports,
    hypervisor,
    ingress,
    consoles,
    sampler,
    supervisor,
    accountStops,
    log,
    descriptors,
    addresses,
    addressGuard,
    alarms: deps.base.alarms,
    routes: { ...own, hypervisor, billing },
    countRunning: async () => (await store.listRunning()).length,
    networks: bridge === null ? [guard, addressGuard] : [bridge, guard],
  };
}

function buildHypervisor(
  { config, clock, log, base: { assertRoom, room } }: ComputeDeps,
  {
    noUsers,
    guard,
    bridge,
  }: Pick<ReturnType<typeof buildNetwork>, 'guard' | 'bridge'> & { noUsers: NoOtherUsers | null },
) {
  const hypervisor = new QemuHypervisor({
    vmsDirectory: join(config.dataDir, 'vms'),
    imagesDirectory: join(config.dataDir, 'images'),
    tiny: tinyIn(TINY_FOLDER),
    clock,
    uidBase: config.vmUidBase,
    noUsers,
    accel: config.vmAccel,
    memoryOvercommit: config.memoryOvercommit,
    warn: (vmId, text) => log.warn(vmId === '' ? {} : { vm_id: vmId }, text),
    disk: room,
    assertRoom,
    outbound: guard,
    bridge,
  });
  room.beforeRelease(() => hypervisor.waits.haltAll());
  return hypervisor;
}

/** What connects guests, and keeps this host closed to them. On a bridge no process of theirs connects. */
function buildNetwork(config: Config, noUsers: NoOtherUsers | null) {
  const { vmUidBase: uidBase, vmPool: network } = config;
  const users = { uidBase, uidCount: UIDS.count, noUsers };
  const outbound = config.vmOutbound === 'on';
  const allowPrivate = config.vmOutboundPrivate === 'on';
  const isBridge = config.vmNetwork === 'bridge';
  return {
    guard: new OutboundGuard({ ...users, letsOut: outbound && !isBridge, allowPrivate }),
    addressGuard: new AddressGuard({ network }),
    bridge: isBridge ? new GuestBridge({ uidBase, network, outbound, allowPrivate }) : null,
  };
}

function buildImageSources(config: Config, outbound: Outbound): ImageSources {
  const list = (text: string) => text.split(',').filter((entry) => entry !== '');
  return new ImageSources({
    folders: list(config.imageSources),
    outbound,
    maxBytes: config.imageMaxGb * GIB,
  });
}

const WAITING = 'machines_wait_for_room';
const FILES = 'few_files_left';
/** Too few to make a machine. */
const FEW_FILES = 16;
const RAISE = 'Raise the limit (LimitNOFILE= in the service, or ulimit -n), or stop machines';
const SAMPLE_MS = 5000;
const CHECK_MS = 15_000;
const ROOM_MS = 250;

/** Begins to look after machines; only a server does, no operator's command. */
export function startCompute(compute: Compute, jobs: Jobs, orphanGraceMs: number): void {
  const { supervisor, sampler, imports, hypervisor, networks, log, alarms } = compute;
  supervisor.start();
  void compute.addresses.claimTaken().then((blocks) => {
    if (blocks.length > 0)
      log.warn({ blocks }, 'addresses of machines that another cloud on this host has too');
    return compute.addressGuard.sweep();
  });
  void imports
    .start()
    .catch((error) => log.error({ err: error }, 'what was left of imports was not removed'));
  // Guests run on when another program empties the host's rules, or ours are from before an update.
  const guard = async () => {
    for (const network of networks) {
      const before = network.refusal?.message;
      await network.ensure().catch(({ message, hint }: AppError) => {
        const say = `the rules for machines are not in place: ${message}. Fix: ${hint}`;
        if (message !== before) log.warn(say);
      });
    }
  };
  void guard();
  jobs.every('keep this host closed to machines', CHECK_MS, guard);
  // Begins to find out, in the background, what guests may be started with.
  void hypervisor.readiness();
  jobs.every('halt machines that fill the disk', ROOM_MS, async () => {
    await hypervisor.waits.look();
    const { count } = hypervisor.waits;
    if (count === 0) alarms.clear(WAITING);
    else {
      const fix = 'Make room on the disk of the data directory; they go on by themselves';
      alarms.raise(WAITING, `${count} virtual machines stand still: the disk is nearly full`, fix);
    }
  });
  jobs.every('watch for open files', CHECK_MS, async () => {
    const { limit } = compute.descriptors;
    if (compute.descriptors.hasRoom(FEW_FILES)) alarms.clear(FILES);
    else alarms.raise(FILES, `Nearly all of ${limit} files are open: no machine is made or started`, RAISE);
  });
  jobs.every('sample machines', SAMPLE_MS, () => sampler.tick());
  jobs.every('look after machines', CHECK_MS, () => supervisor.check());
  jobs.every('sweep machines without a row', Math.max(orphanGraceMs, CHECK_MS), () =>
    supervisor.sweepOrphans(),
  );
}

/** Lets go of machines, which run on. */
export async function closeCompute({
  supervisor,
  imports,
  ingress,
  consoles,
  hypervisor,
}: Compute): Promise<void> {
  await imports.close();
  await supervisor.close();
  consoles.close();
  await ingress.closeAll();
  await hypervisor.close();
}
