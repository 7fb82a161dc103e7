/** Keeps the address of each machine answering, and learns from it when a guest came to life. */
import type { Clock } from '../clock.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Front, FrontPort, RefusedPort } from './front.ts';
import { guestNetwork } from './guest-spec.ts';
import type { Hypervisor } from './hypervisor.ts';
import type { VmRow, VmStore } from './store.ts';

const SSH = 22;
/** Where SSH answers as well, because port 22 needs a privilege that Cloudlet may not have. */
const SSH_UNPRIVILEGED = 2222;

/** Told what went wrong with a machine while nobody waited for an answer. */
export type Report = (vmId: string, what: string, error: unknown) => void;

export interface ExposuresDeps {
  readonly front: Front;
  readonly hypervisor: Hypervisor;
  readonly metadata: Metadata;
  readonly store: VmStore;
  readonly clock: Clock;
  readonly report: Report;
  /** Ports that the host does not let us open; a machine is not worse for it. */
  readonly onRefused: (vmId: string, ports: readonly RefusedPort[]) => void;
}

export class Exposures {
  readonly #deps: ExposuresDeps;

  constructor(deps: ExposuresDeps) {
    this.#deps = deps;
  }

  /** Makes the machine's address answer. Never rejects. */
  async open(row: Omit<VmRow, 'id'>): Promise<void> {
    const { front, hypervisor, report, onRefused } = this.#deps;
    if (row.address === null) return;
    const vmId = row.vm_id;
    const network = guestNetwork(row);
    try {
      const refused = await front.open({
        vmId,
        address: row.address,
        ports: frontPorts(network.ports),
        endpointOf: (port) => hypervisor.endpoint({ vmId, network }, port),
        onSignOfLife: () => void this.#markReady(vmId),
      });
      if (refused.length > 0) onRefused(vmId, refused);
    } catch (error) {
      report(vmId, 'its address could not be opened', error);
    }
  }

  setRunning(vmId: string, running: boolean): void {
    this.#deps.front.setRunning(vmId, running);
  }

  close(vmId: string): Promise<void> {
    return this.#deps.front.close(vmId);
  }

  async #markReady(vmId: string): Promise<void> {
    const { metadata, store, clock, report } = this.#deps;
    try {
      await metadata.commit([store.markReady(vmId, clock.now())]);
    } catch (error) {
      report(vmId, 'its first sign of life was not stored', error);
    }
  }
}

function frontPorts(guestPorts: readonly number[]): FrontPort[] {
  const ports = guestPorts.map((port) => ({ port, guestPort: port }));
  if (guestPorts.includes(SSH_UNPRIVILEGED)) return ports;
  return [...ports, { port: SSH_UNPRIVILEGED, guestPort: SSH }];
}
