/** Builds the resources of machines: the engine, its networks and addresses. */

import { join } from 'node:path';
import type { Logger } from 'pino';
import { ImageSources } from '../compute/images/image-sources.ts';
import { KnownImageAddresses } from '../compute/images/known-image-fetch.ts';
import { AddressPool } from '../compute/machines/addresses.ts';
import type { LentKeysDeps } from '../compute/machines/lent-keys.ts';
import type { MachinePoints } from '../compute/machines/machine-origins.ts';
import type { VmBilling } from '../compute/machines/vm-billing.ts';
import { VmStore } from '../compute/machines/vm-store.ts';
import { computePart } from '../compute/part.ts';
import type { NetworkServices } from '../compute/private-network.ts';
import type { Config } from '../config/config.ts';
import { listIn } from '../config/host-names.ts';
import { machineLimits, publishingRules } from '../config/machine-limits.ts';
import { publishedAt } from '../config/published-address.ts';
import { BridgeIngress } from '../drivers/bridge-ingress/bridge-ingress.ts';
import { drillGroup } from '../drivers/drill-process/drill-ground.ts';
import { removeEmptyGroups } from '../drivers/host-process/cgroups.ts';
import { endOrphans } from '../drivers/host-process/orphans.ts';
import { LoopbackIngress } from '../drivers/loopback-ingress/loopback-ingress.ts';
import { PrivateNetworks, type PrivateNetworksDeps } from '../drivers/private-network/private-networks.ts';
import { TcpListeners } from '../drivers/public-listeners/public-listeners.ts';
import { type GuestNetwork, guestNetwork } from '../drivers/qemu/guest-network.ts';
import { UIDS } from '../drivers/qemu/guests/guest-folders.ts';
import { TINY_FOLDER, tinyIn } from '../drivers/qemu/images/tiny-image.ts';
import { QemuHypervisor } from '../drivers/qemu/qemu-hypervisor.ts';
import type { OwnAddresses } from '../http/origins.ts';
import type { Clock } from '../platform/clock.ts';
import { Descriptors } from '../platform/host/descriptors.ts';
import { type NoOtherUsers, whyNoOtherUsers } from '../platform/host/other-users.ts';
import { Tunnels } from '../resources/tunnels.ts';
import { eventStatements } from '../webhooks/events-store.ts';
import type { Foundations } from './foundations.ts';

export interface HostDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly base: Foundations;
  readonly urls: Pick<OwnAddresses, 'apiUrl' | 'dataUrl' | 'listening'>;
  readonly billing: VmBilling;
  readonly services: NetworkServices;
  readonly isCurrent: LentKeysDeps['isCurrent'];
  readonly points: MachinePoints;
  /** Name of the restore drill that the machines are for. */
  readonly drill: string | undefined;
}

export async function buildCompute(deps: HostDeps) {
  const { config, clock, log, billing, urls } = deps;
  const { metadata, diskSpace, alarms, sweepGuard } = deps.base;
  const limits = machineLimits(config);
  const noUsers = whyNoOtherUsers({ first: config.vmUidBase, count: UIDS.count }, config.dataDir);
  const network = guestNetwork(config, { claim: deps.base.claim, noUsers });
  const { addressGuard, bridge } = network;
  const hypervisor = buildHypervisor(deps, { ...network, noUsers });
  const { listen, shown: shownHost } = publishedAt(config);
  const { ports } = deps.base;
  const everywhere = ports?.everywhere.bind(ports);
  const listeners = new TcpListeners({ host: listen, ports });
  const warn = (text: string) => log.warn(text);
  const descriptors = new Descriptors({ clock, reserve: config.fileReserve });
  const onError = (id: string, what: string, error: unknown) => log.error({ id, err: error }, what);
  const tunnels = new Tunnels({
    clock,
    idleMs: config.tunnelIdleSeconds * 1000,
    max: Math.ceil(config.maxConnections / 4),
    assertFree: (files) => descriptors.assertFree(files),
    onError,
  });
  const ingress =
    bridge === null
      ? new LoopbackIngress({ clock, descriptors, guard: addressGuard })
      : new BridgeIngress({ clock });
  const taken = await new VmStore(metadata).addresses();
  const addresses = new AddressPool({ network: config.vmPool, taken, host: ingress });
  if (bridge !== null) addresses.markTaken(bridge.gateway);
  const part = computePart({
    metadata,
    assertSpace: diskSpace.assertMachineMayGrow.bind(diskSpace),
    diskShares: deps.base.diskShares,
    alarms,
    sweepGuard,
    clock,
    log,
    billing,
    apiUrl: () => urls.apiUrl,
    dataUrl: () => urls.dataUrl,
    publishing: { rules: publishingRules(config), shownHost, listeners, everywhere },
    hypervisor,
    ingress,
    addresses,
    descriptors,
    tunnels,
    tickets: deps.base.tickets,
    services: deps.services,
    points: deps.points,
    isCurrent: deps.isCurrent,
    privateNetworks: buildPrivateNetworks(deps, {
      socketOf: (vmId) => hypervisor.privateSocket(vmId),
      keysOf: (accountId, vmId) => part.lentKeys.of(accountId, vmId),
    }),
    host: {
      hypervisor,
      disks: hypervisor.copies,
      waits: hypervisor.waits,
      networks: network.networks,
      sweepHost: async () => {
        await addressGuard.sweep();
        if (deps.drill !== undefined) return;
        await endOrphans(warn);
        await removeEmptyGroups();
        await network.removeLeft(warn);
      },
      descriptors,
      close: () => hypervisor.close(),
    },
    ...imagesFrom(deps),
    announce: eventStatements,
    onError,
    onClosedPorts: (vmId, ports) => log.warn({ vm_id: vmId, ports }, 'closed published ports'),
    ...limits,
  });
  return { ...part, hypervisor, tunnels, connections: descriptors.connections };
}

/** Allowed sources of images for administrators. */
function imagesFrom({ config, base: { outbound } }: HostDeps) {
  const folders = listIn(config.imageSources);
  return {
    imageSources: new ImageSources({ folders, outbound, maxBytes: machineLimits(config).maxImageBytes }),
    imageAddresses: new KnownImageAddresses(outbound, config.imageMirror),
  };
}

function buildHypervisor(
  { config, clock, log, drill, base: { assertSpace, diskSpace, membership } }: HostDeps,
  { noUsers, guard, bridge }: Pick<GuestNetwork, 'guard' | 'bridge'> & { noUsers: NoOtherUsers | null },
) {
  const hypervisor = new QemuHypervisor({
    vmsDirectory: join(config.dataDir, 'vms'),
    isElsewhere: !membership.isHost,
    imagesDirectory: join(config.dataDir, 'images'),
    tiny: tinyIn(TINY_FOLDER),
    clock,
    uidBase: config.vmUidBase,
    noUsers,
    accel: config.vmAccel,
    memoryOvercommit: config.memoryOvercommit,
    warn: (vmId, text) => log.warn(vmId === '' ? {} : { vm_id: vmId }, text),
    disk: diskSpace,
    assertSpace,
    assertGrowth: diskSpace.assertMachineMayGrow.bind(diskSpace),
    outbound: drill === undefined ? guard : null,
    bridge,
    ...(drill === undefined ? {} : { drillGroup: drillGroup(drill, 'machines') }),
  });
  diskSpace.beforeRelease(() => hypervisor.waits.haltAll());
  return hypervisor;
}

const EVERY_ADDRESS = ['', '0.0.0.0', '::'];

function buildPrivateNetworks(
  { config, log, services, urls }: HostDeps,
  guests: Pick<PrivateNetworksDeps, 'socketOf' | 'keysOf'>,
) {
  const host = EVERY_ADDRESS.includes(config.host) ? '127.0.0.1' : config.host;
  return new PrivateNetworks({
    ...guests,
    services,
    data: () => ({
      host,
      port: Number(new URL(urls.listening.dataUrl).port),
      maxConnections: Math.ceil(config.maxConnections / 4),
    }),
    warn: (text) => log.warn(text),
  });
}
