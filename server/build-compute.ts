/** The part of the composition root that makes compute: engine, addresses, machines, console, metrics. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { Clock } from './clock.ts';
import { Actions } from './compute/actions.ts';
import { AddressPool } from './compute/addresses.ts';
import { Changes } from './compute/changes.ts';
import { Consoles } from './compute/console.ts';
import { ConsoleTickets } from './compute/console-tickets.ts';
import { Exposures } from './compute/exposures.ts';
import { ImageStore } from './compute/image-store.ts';
import { Images } from './compute/images.ts';
import { Machines } from './compute/machines.ts';
import { Metrics } from './compute/metrics.ts';
import { MetricsStore } from './compute/metrics-store.ts';
import { Power } from './compute/power.ts';
import { Recovery } from './compute/recovery.ts';
import { Removal } from './compute/removal.ts';
import { Runs } from './compute/runs.ts';
import { Sampler } from './compute/sampler.ts';
import { VmStore } from './compute/store.ts';
import { Supervisor } from './compute/supervisor.ts';
import { meterVms } from './compute/vm-series.ts';
import type { Config } from './config.ts';
import { LoopbackFront } from './drivers/loopback-front/loopback-front.ts';
import { QemuHypervisor } from './drivers/qemu/qemu-hypervisor.ts';
import type { Metadata } from './metadata/metadata.ts';
import type { Jobs } from './system/jobs.ts';
import type { Meters } from './system/meters.ts';

export interface ComputeDeps {
  readonly config: Config;
  readonly clock: Clock;
  readonly log: Logger;
  readonly meters: Meters;
  readonly metadata: Metadata;
  readonly requireCredit: (accountId: number) => Promise<void>;
}

/** What set-up built; missing until it did. */
const GUEST = fileURLToPath(new URL('../build/guest/', import.meta.url));
const TINY = { kernel: join(GUEST, 'tiny-kernel'), initrd: join(GUEST, 'tiny-initrd') };

export type Compute = Awaited<ReturnType<typeof buildCompute>>;

/** Makes the parts; nothing runs until `supervisor.start()`. */
export async function buildCompute({ config, clock, log, meters, metadata, requireCredit }: ComputeDeps) {
  const store = new VmStore(metadata);
  const hypervisor = new QemuHypervisor({
    vmsDirectory: join(config.dataDir, 'vms'),
    imagesDirectory: join(config.dataDir, 'images'),
    tiny: TINY,
    clock,
    uidBase: config.vmUidBase,
    accel: config.vmAccel,
  });
  const front = new LoopbackFront({ clock });
  const shared = {
    ...{ metadata, clock, store, hypervisor, front, requireCredit, graceMs: config.vmGraceSeconds * 1000 },
    report: (vmId: string, what: string, error: unknown) => log.error({ vm_id: vmId, err: error }, what),
    onRefused: (vmId: string, ports: unknown) => log.warn({ vm_id: vmId, ports }, 'ports that stay closed'),
  };
  const addresses = new AddressPool(config.vmPool, await store.addresses());
  const images = new Images({ store: new ImageStore(metadata) });
  const exposures = new Exposures(shared);
  const machines = new Machines({ ...shared, images, addresses, exposures, outbound: false });
  const actions = new Actions();
  const changes = new Changes(shared);
  const runs = new Runs({ ...shared, changes, exposures });
  const parts = { machines, actions, changes, runs, exposures, addresses };
  const power = new Power({ ...shared, ...parts });
  const removal = new Removal({ ...shared, ...parts });
  const recovery = new Recovery({ ...shared, ...parts, removal, hostBootedAt: hostBootedAt() });
  const orphanGraceMs = config.sweepGraceSeconds * 1000;
  const supervisor = new Supervisor({ ...shared, ...parts, recovery, orphanGraceMs });
  const metricsStore = new MetricsStore(metadata);
  const running = () => store.listRunning();
  const sampler = new Sampler({ ...shared, store: metricsStore, running });
  const find: Machines['findFor'] = (principal, vmId) => machines.findFor(principal, vmId);
  const metrics = new Metrics({ clock, store: metricsStore, sampler, find });
  meterVms(meters, sampler);
  const consoles = new Consoles({ hypervisor });
  const tickets = new ConsoleTickets(clock);
  const routes = { machines, power, removal, images, metrics, find, consoles, tickets, hypervisor };
  return { routes, hypervisor, front, consoles, sampler, supervisor };
}

const SAMPLE_MS = 5000;
const CHECK_MS = 15_000;

/** Begins to look after machines; only a server does, no operator's command. */
export function startCompute(compute: Compute, jobs: Jobs, orphanGraceMs: number): void {
  const { supervisor, sampler, hypervisor } = compute;
  supervisor.start();
  // Begins to find out, in the background, what guests may be started with.
  void hypervisor.readiness();
  jobs.every('sample machines', SAMPLE_MS, () => sampler.tick());
  jobs.every('look after machines', CHECK_MS, () => supervisor.check());
  jobs.every('sweep machines without a row', Math.max(orphanGraceMs, CHECK_MS), () =>
    supervisor.sweepOrphans(),
  );
}

/** Lets go of machines, which run on. */
export async function closeCompute({ supervisor, front, consoles, hypervisor }: Compute): Promise<void> {
  await supervisor.close();
  consoles.close();
  await front.closeAll();
  await hypervisor.close();
}

/** When this host was booted, ms since 1970; 0 where the kernel does not tell. */
function hostBootedAt(): number {
  try {
    return Number(/^btime (\d+)$/m.exec(readFileSync('/proc/stat', 'utf8'))?.[1] ?? 0) * 1000;
  } catch {
    return 0;
  }
}
