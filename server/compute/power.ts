/** Starts and stops machines for their owners. */
import type { Principal } from '../accounts/principal.ts';
import type { Clock } from '../clock.ts';
import type { Awaitable } from '../metadata/metadata.ts';
import type { Actions } from './actions.ts';
import type { Changes } from './changes.ts';
import type { Machines } from './machines.ts';
import { noVmReceipt, type Runs, type VmReceipt } from './runs.ts';
import type { Vm } from './schema.ts';
import { nextState } from './transitions.ts';
import { presentVm } from './vm-answer.ts';

export interface PowerDeps {
  readonly clock: Clock;
  readonly machines: Machines;
  readonly actions: Actions;
  readonly changes: Changes;
  readonly runs: Runs;
  /** Throws `insufficient_credits` when the account has none left. */
  readonly requireCredit: (accountId: number) => Awaitable<void>;
  /** How long a guest is asked to shut down when the caller does not say, ms. */
  readonly graceMs: number;
}

export interface StopWish {
  /** 0: at once. */
  readonly graceMs?: number | undefined;
  readonly receipt?: VmReceipt;
}

export class Power {
  readonly #deps: PowerDeps;

  constructor(deps: PowerDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when the guest's processor runs. Throws `vm_not_found`, `vm_invalid_state`, `vm_locked`,
   * `insufficient_credits`, and what the engine says (`engine_unavailable`, `insufficient_capacity`, …).
   */
  async start(principal: Principal, vmId: string, receipt = noVmReceipt): Promise<Vm> {
    const { machines, actions, changes, runs, clock } = this.#deps;
    await machines.findFor(principal, vmId);
    const started = await actions.run(vmId, 'start', async () => {
      const row = await machines.findFor(principal, vmId);
      const next = nextState(row.state, 'start');
      if (row.state === 'running' && next === 'running') return row;
      await this.#deps.requireCredit(row.account_id);
      const isUnderWay = row.state === 'starting';
      const starting = isUnderWay ? row : await changes.apply(row, { event: 'start', desired: 'running' });
      const before = isUnderWay ? 'stopped' : row.state;
      return runs.boot(starting, { before, receipt, since: null });
    });
    return presentVm(started, clock.now());
  }

  /** Resolves when the guest is gone. Throws `vm_not_found`, `vm_invalid_state`, `vm_locked`. */
  async stop(principal: Principal, vmId: string, wish: StopWish = {}): Promise<Vm> {
    const { machines, actions, runs, clock } = this.#deps;
    const { graceMs = this.#deps.graceMs, receipt = noVmReceipt } = wish;
    await machines.findFor(principal, vmId);
    const stopped = await actions.run(vmId, 'stop', async () => {
      const row = await machines.findFor(principal, vmId);
      return runs.halt(row, { graceMs, receipt });
    });
    return presentVm(stopped, clock.now());
  }
}
