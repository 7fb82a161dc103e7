/**
 * Addresses of machines on this host. Every address of 127.0.0.0/8 answers on Linux without any set-up; the
 * operator must assign other addresses to the host. Cloudlet listens, and forwards each connection.
 */
import type { Socket } from 'node:net';
import type { GuestEndpoint } from '../../compute/hypervisor.ts';
import {
  type Exposure,
  type Ingress,
  type IngressTraffic,
  NOT_RUNNING,
  type PortState,
} from '../../compute/ingress.ts';
import type { Clock } from '../../platform/clock.ts';
import type { AddressGuard } from './address-guard.ts';
import { HostAddresses } from './host-addresses.ts';
import { type Descriptors, type IngressTimings, ingressPorts, MachineIngress } from './machine-ingress.ts';

export interface LoopbackIngressDeps {
  readonly clock: Clock;
  readonly descriptors: Descriptors;
  /** null: machines listen on their own ports, which programs that listen on all addresses share. */
  readonly guard: AddressGuard | null;
  /** For tests. */
  readonly timings?: Partial<IngressTimings>;
}

export const TIMINGS: IngressTimings = {
  retryMs: 250,
  waitMs: 30_000,
  holdMs: 10_000,
  atOnceMs: 2000,
  lingerMs: 5000,
};

export class LoopbackIngress implements Ingress {
  readonly #deps: LoopbackIngressDeps;
  readonly #timings: IngressTimings;
  readonly #machines = new Map<string, MachineIngress>();
  readonly #addresses = new HostAddresses();

  constructor(deps: LoopbackIngressDeps) {
    this.#deps = deps;
    this.#timings = { ...TIMINGS, ...deps.timings };
  }

  async claim(base: string): Promise<boolean> {
    const isOurs = await this.#addresses.claim(base);
    if (isOurs) await this.#deps.guard?.protect(base);
    return isOurs;
  }

  isFree(address: string, guestPorts: readonly number[]): Promise<boolean> {
    return this.#addresses.isFree(
      address,
      ingressPorts(guestPorts).map(({ port }) => port),
    );
  }

  open(exposure: Exposure): Promise<readonly PortState[]> {
    const { clock, descriptors } = this.#deps;
    let machine = this.#machines.get(exposure.vmId);
    if (machine === undefined) {
      const listenPorts = (ports: readonly number[]) => this.#listenPorts(exposure.address, ports);
      machine = new MachineIngress({ clock, descriptors, timings: this.#timings, exposure, listenPorts });
      this.#machines.set(exposure.vmId, machine);
    }
    return machine.open();
  }

  async #listenPorts(address: string, ports: readonly number[]): Promise<ReadonlyMap<number, number>> {
    const { guard } = this.#deps;
    // The block is not ours, so its rules are not either.
    if (guard === null || !(await this.#addresses.claim(guard.blockOf(address)))) return new Map();
    return guard.listenPorts(address, ports);
  }

  begin(vmId: string): void {
    this.#machines.get(vmId)?.begin();
  }

  async dial(vmId: string, guestPort: number, endpoint: GuestEndpoint): Promise<Socket | null> {
    return (await this.#machines.get(vmId)?.dial(guestPort, endpoint)) ?? null;
  }

  ports(vmId: string, guestPorts: readonly number[]): readonly PortState[] {
    const known = this.#machines.get(vmId)?.ports();
    return known ?? ingressPorts(guestPorts).map((port) => ({ ...port, reason: NOT_RUNNING }));
  }

  traffic(vmId: string): IngressTraffic | null {
    return this.#machines.get(vmId)?.traffic() ?? null;
  }

  async close(vmId: string): Promise<void> {
    const machine = this.#machines.get(vmId);
    this.#machines.delete(vmId);
    await machine?.close();
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#machines.keys()].map((vmId) => this.close(vmId)));
    // Runs while the addresses are still ours.
    await this.#deps.guard?.release();
    await this.#addresses.close();
  }
}
