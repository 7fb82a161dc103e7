/** Starts and stops machines for their owners. */

import type { Call } from '../../calls/principal.ts';
import { BACKGROUND, type CallRecorder, inFirstCommit } from '../../metadata/change.ts';
import type { Reason } from '../../resources/row-change.ts';
import type { Hypervisor } from '../hypervisor.ts';
import { assertNotTooLarge } from '../instance-types.ts';
import type { Vm } from '../schema.ts';
import type { Lifecycle } from './lifecycle.ts';
import type { MachineCall, Machines, OpenFiles } from './machines.ts';
import type { Runs } from './runs.ts';
import { accountBlocked, type MachineTurns, nextState, type VmWanted } from './transitions.ts';
import type { VmBilling } from './vm-billing.ts';
import type { VmRow, VmStore } from './vm-store.ts';
import type { VmViews } from './vm-view.ts';

export interface PowerControlDeps {
  readonly store: VmStore;
  readonly machines: Machines;
  readonly turns: MachineTurns;
  readonly lifecycle: Lifecycle;
  readonly runs: Runs;
  readonly views: VmViews;
  readonly billing: Pick<VmBilling, 'assertCredit'>;
  readonly descriptors: OpenFiles;
  readonly hypervisor: Pick<Hypervisor, 'memoryForGuestsMb' | 'capabilities'>;
  /** Default time for a graceful shutdown, ms. */
  readonly graceMs: number;
}

export interface StopRequest {
  /** 0: immediately. */
  readonly graceMs?: number | undefined;
  /** Why, if the owner did not request the stop. */
  readonly reason?: Reason | undefined;
}

export class PowerControl {
  readonly #deps: PowerControlDeps;

  constructor(deps: PowerControlDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when the guest's CPU runs. Throws `vm_not_found`, `vm_invalid_state`, `vm_locked`,
   * `insufficient_credits`, `quota_exceeded`, `account_suspended`, and the engine's errors
   * (`engine_unavailable`, `insufficient_capacity`, …).
   */
  async start(call: Call, vmId: string): Promise<Vm> {
    const { machines, views } = this.#deps;
    const find = () => machines.findFor(call.principal, vmId);
    return views.present(await this.startOwned(vmId, find, call));
  }

  /** Same as start(), for a caller that has checked the owner. */
  startOwned(vmId: string, find: VmWanted['find'], call: CallRecorder = BACKGROUND): Promise<VmRow> {
    const { store, turns, lifecycle, runs, billing, descriptors, hypervisor } = this.#deps;
    return turns.act({ id: vmId, action: 'start', find }, async (row) => {
      if (nextState(row.state, 'start') === 'running') return row;
      const isUnderWay = row.state === 'starting';
      // The commit checks all other states.
      if (isUnderWay && (await store.blockOf(row.account_id)) !== null) throw accountBlocked();
      assertNotTooLarge(row.memory_mb, hypervisor.memoryForGuestsMb());
      await billing.assertCredit(row);
      descriptors.assertFree(hypervisor.capabilities.filesToStart);
      const begin = { event: 'start', desired: 'running' } as const;
      // After a kill the next run of Cloudlet boots the machine.
      const inFirst = inFirstCommit(call.entry);
      const starting = isUnderWay ? row : await inFirst((first) => lifecycle.apply(row, begin, first));
      const before = isUnderWay ? 'stopped' : row.state;
      return runs.boot(starting, { before, call, since: null });
    });
  }

  /**
   * Resolves when the guest is gone. A grace of 0 also ends a stop in progress immediately. Throws
   * `vm_not_found`, `vm_invalid_state`, `vm_locked`.
   */
  async stop(call: MachineCall, vmId: string, request: StopRequest = {}): Promise<Vm> {
    const { machines, turns, runs, views } = this.#deps;
    const { graceMs = this.#deps.graceMs, reason } = request;
    const find = async () => {
      const row = await machines.findFor(call.principal, vmId);
      // Two callers share one stop; a caller without grace must not wait for the other's grace.
      if (graceMs === 0) turns.abort(vmId, 'stop');
      return row;
    };
    const stopped = await turns.act({ id: vmId, action: 'stop', find }, (row, signal) =>
      runs.halt(row, { graceMs, call, signal, reason }),
    );
    return views.present(stopped);
  }
}
