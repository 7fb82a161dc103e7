/**
 * For machines that have their address themselves: nobody listens here. What is left to do is to notice the
 * first sign of life.
 */
import type { Clock } from '../../clock.ts';
import type { Exposure, Front, FrontTraffic, RefusedPort } from '../../compute/front.ts';
import { GuestRun } from '../loopback-front/guest-run.ts';
import { TIMINGS } from '../loopback-front/loopback-front.ts';

interface Machine {
  readonly exposure: Exposure;
  run: GuestRun | null;
}

export class BridgeFront implements Front {
  readonly #clock: Clock;
  readonly #machines = new Map<string, Machine>();

  constructor({ clock }: { readonly clock: Clock }) {
    this.#clock = clock;
  }

  async open(exposure: Exposure): Promise<readonly RefusedPort[]> {
    await this.close(exposure.vmId);
    this.#machines.set(exposure.vmId, { exposure, run: null });
    return [];
  }

  setRunning(vmId: string, running: boolean): void {
    const machine = this.#machines.get(vmId);
    if (machine === undefined || running === (machine.run !== null)) return;
    machine.run?.stop();
    machine.run = running ? this.#newRun(machine.exposure) : null;
    machine.run?.start();
  }

  #newRun({ endpointOf, onSignOfLife }: Exposure): GuestRun {
    return new GuestRun({ clock: this.#clock, timings: TIMINGS, endpointOf, onSignOfLife });
  }

  /** Not known here: connections do not pass. */
  traffic(_vmId: string): FrontTraffic | null {
    return null;
  }

  async close(vmId: string): Promise<void> {
    this.setRunning(vmId, false);
    this.#machines.delete(vmId);
  }

  async closeAll(): Promise<void> {
    for (const vmId of [...this.#machines.keys()]) await this.close(vmId);
  }
}
