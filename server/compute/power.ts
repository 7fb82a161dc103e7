/** Starts and stops machines for their owners. */
import type { Principal } from '../accounts/principal.ts';
import type { Awaitable } from '../metadata/metadata.ts';
import type { Actions } from './actions.ts';
import type { Changes } from './changes.ts';
import type { Machines } from './machines.ts';
import { noVmReceipt, type Runs, type VmReceipt } from './runs.ts';
import type { Vm } from './schema.ts';
import { barred } from './stop-causes.ts';
import type { VmRow, VmStore } from './store.ts';
import { nextState } from './transitions.ts';
import type { VmAnswers } from './vm-answer.ts';
import type { VmBilling } from './vm-billing.ts';

export interface PowerDeps {
  readonly store: VmStore;
  readonly machines: Machines;
  readonly actions: Actions;
  readonly changes: Changes;
  readonly runs: Runs;
  readonly answers: VmAnswers;
  readonly billing: Pick<VmBilling, 'require'>;
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
   * `insufficient_credits`, `account_suspended`, and what the engine says (`engine_unavailable`,
   * `insufficient_capacity`, …).
   */
  async start(principal: Principal, vmId: string, receipt = noVmReceipt): Promise<Vm> {
    const { machines, answers } = this.#deps;
    await machines.findFor(principal, vmId);
    const started = await this.startOwned(vmId, () => machines.findFor(principal, vmId), receipt);
    return answers.present(started);
  }

  /** As start(), for a caller that knows whose machine it is: `find` reads it, once it is its turn. */
  startOwned(vmId: string, find: () => Awaitable<VmRow>, receipt = noVmReceipt): Promise<VmRow> {
    const { store, actions, changes, runs, billing } = this.#deps;
    return actions.run(vmId, 'start', async () => {
      const row = await find();
      const next = nextState(row.state, 'start');
      if (row.state === 'running' && next === 'running') return row;
      if ((await store.barOf(row.account_id)) !== null) throw barred();
      await billing.require(row.account_id, row.instance_type);
      const isUnderWay = row.state === 'starting';
      const starting = isUnderWay ? row : await changes.apply(row, { event: 'start', desired: 'running' });
      const before = isUnderWay ? 'stopped' : row.state;
      return runs.boot(starting, { before, receipt, since: null });
    });
  }

  /**
   * Resolves when the guest is gone. With a grace of 0 also a stop that is under way ends at once. Throws
   * `vm_not_found`, `vm_invalid_state`, `vm_locked`.
   */
  async stop(principal: Principal, vmId: string, wish: StopWish = {}): Promise<Vm> {
    const { machines, actions, runs, answers } = this.#deps;
    const { graceMs = this.#deps.graceMs, receipt = noVmReceipt } = wish;
    await machines.findFor(principal, vmId);
    // The same stop gets two callers; who wants it at once is not made to wait for the other's grace.
    if (graceMs === 0) actions.hurry(vmId, 'stop');
    const stopped = await actions.run(vmId, 'stop', async (hurry) => {
      const row = await machines.findFor(principal, vmId);
      return runs.halt(row, { graceMs, receipt, hurry });
    });
    return answers.present(stopped);
  }
}
