/** Starts and stops machines for their owners. */
import type { Principal } from '../accounts/principal.ts';
import type { Awaitable } from '../metadata/metadata.ts';
import type { Actions } from './actions.ts';
import type { Changes, Reason } from './changes.ts';
import type { Caller, Machines, OpenFiles } from './machines.ts';
import { noVmReceipt, type Runs, type VmReceipt } from './runs.ts';
import type { Vm } from './schema.ts';
import { barred } from './stop-causes.ts';
import type { VmRow, VmStore } from './store.ts';
import { nextState } from './transitions.ts';
import type { VmAnswers } from './vm-answer.ts';
import type { VmBilling } from './vm-billing.ts';

/** Files that a start opens: listeners, consoles, pipes of programs. */
const FILES_TO_START = 48;

export interface PowerDeps {
  readonly store: VmStore;
  readonly machines: Machines;
  readonly actions: Actions;
  readonly changes: Changes;
  readonly runs: Runs;
  readonly answers: VmAnswers;
  readonly billing: Pick<VmBilling, 'require'>;
  readonly descriptors: OpenFiles;
  /** How long a guest is asked to shut down when the caller does not say, ms. */
  readonly graceMs: number;
}

export interface StopWish {
  /** 0: at once. */
  readonly graceMs?: number | undefined;
  readonly receipt?: VmReceipt;
  /** Why, when its owner did not ask for it. */
  readonly reason?: Reason;
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
    const { store, actions, changes, runs, billing, descriptors } = this.#deps;
    return actions.run(vmId, 'start', async () => {
      const row = await find();
      const next = nextState(row.state, 'start');
      if (row.state === 'running' && next === 'running') return row;
      if ((await store.barOf(row.account_id)) !== null) throw barred();
      await billing.require(row.account_id, row.instance_type);
      descriptors.demand(FILES_TO_START);
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
  async stop(caller: Caller, vmId: string, wish: StopWish = {}): Promise<Vm> {
    const { machines, actions, runs, answers } = this.#deps;
    const { graceMs = this.#deps.graceMs, receipt = noVmReceipt, reason } = wish;
    await machines.findFor(caller, vmId);
    // The same stop gets two callers; who wants it at once is not made to wait for the other's grace.
    if (graceMs === 0) actions.hurry(vmId, 'stop');
    const stopped = await actions.run(vmId, 'stop', async (hurry) => {
      const row = await machines.findFor(caller, vmId);
      return runs.halt(row, { graceMs, receipt, hurry, ...(reason && { reason }) });
    });
    return answers.present(stopped);
  }
}
