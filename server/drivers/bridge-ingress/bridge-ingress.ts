/** For machines with their own address: nothing listens here. Only detects the first sign of life. */
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
import { TIMINGS } from '../loopback-ingress/loopback-ingress.ts';
import { IngressRun } from '../loopback-ingress/machine-ingress.ts';

interface Machine {
  readonly exposure: Exposure;
  run: IngressRun | null;
}

export class BridgeIngress implements Ingress {
  readonly #clock: Clock;
  readonly #machines = new Map<string, Machine>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  /** The bridge's network is this cloud's. */
  async claim(_base: string): Promise<boolean> {
    return true;
  }

  async isFree(_address: string, _guestPorts: readonly number[]): Promise<boolean> {
    return true;
  }

  async open(exposure: Exposure): Promise<readonly PortState[]> {
    if (!this.#machines.has(exposure.vmId)) this.#machines.set(exposure.vmId, { exposure, run: null });
    return [];
  }

  begin(vmId: string): void {
    const machine = this.#machines.get(vmId);
    if (machine === undefined || machine.run !== null) return;
    const { endpointOf, onSignOfLife } = machine.exposure;
    machine.run = new IngressRun({ clock: this.#clock, timings: TIMINGS, endpointOf, onSignOfLife });
    machine.run.start();
  }

  async dial(vmId: string, guestPort: number, endpoint: GuestEndpoint): Promise<Socket | null> {
    return (await this.#machines.get(vmId)?.run?.reach(guestPort, endpoint)) ?? null;
  }

  ports(vmId: string, guestPorts: readonly number[]): readonly PortState[] {
    const reason = this.#machines.has(vmId) ? null : NOT_RUNNING;
    return guestPorts.map((port) => ({ port, guestPort: port, reason }));
  }

  /** Unknown here, because connections do not pass through Cloudlet. */
  traffic(_vmId: string): IngressTraffic | null {
    return null;
  }

  async close(vmId: string): Promise<void> {
    this.#machines.get(vmId)?.run?.stop();
    this.#machines.delete(vmId);
  }

  async closeAll(): Promise<void> {
    for (const vmId of [...this.#machines.keys()]) await this.close(vmId);
  }
}
