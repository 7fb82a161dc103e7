/**
 * Addresses of machines on this host. Every address of 127.0.0.0/8 answers on Linux without any set-up;
 * others must be given to the host by its operator. Cloudlet listens and hands each connection on.
 */
import type { Clock } from '../../clock.ts';
import type { Exposure, Front, FrontTraffic, RefusedPort } from '../../compute/front.ts';
import type { FrontTimings } from './guest-run.ts';
import { MachineFront } from './machine-front.ts';

export interface LoopbackFrontDeps {
  readonly clock: Clock;
  /** For tests. */
  readonly timings?: Partial<FrontTimings>;
}

export const TIMINGS: FrontTimings = {
  retryMs: 250,
  waitMs: 30_000,
  holdMs: 10_000,
  atOnceMs: 2000,
  lingerMs: 5000,
};

export class LoopbackFront implements Front {
  readonly #clock: Clock;
  readonly #timings: FrontTimings;
  readonly #machines = new Map<string, MachineFront>();

  constructor(deps: LoopbackFrontDeps) {
    this.#clock = deps.clock;
    this.#timings = { ...TIMINGS, ...deps.timings };
  }

  /** A machine that is open already is opened anew. */
  async open(exposure: Exposure): Promise<readonly RefusedPort[]> {
    await this.close(exposure.vmId);
    const machine = new MachineFront({ clock: this.#clock, timings: this.#timings, exposure });
    this.#machines.set(exposure.vmId, machine);
    return machine.open();
  }

  /** Saying the same again changes nothing: a new run is told as an end and a beginning. */
  setRunning(vmId: string, running: boolean): void {
    this.#machines.get(vmId)?.setRunning(running);
  }

  traffic(vmId: string): FrontTraffic | null {
    return this.#machines.get(vmId)?.traffic() ?? null;
  }

  async close(vmId: string): Promise<void> {
    const machine = this.#machines.get(vmId);
    this.#machines.delete(vmId);
    await machine?.close();
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#machines.keys()].map((vmId) => this.close(vmId)));
  }
}
