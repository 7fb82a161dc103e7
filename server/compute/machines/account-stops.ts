/** Stops the machines of an account that may not run any, and starts or deletes them afterwards. */
import { UNASKED } from '../../metadata/change.ts';
import { isAppError } from '../../platform/errors.ts';
import type { Actions } from './actions.ts';
import { isUp, type Reason } from './lifecycle.ts';
import type { MachineCall } from './machines.ts';
import type { PowerControl } from './power-control.ts';
import type { Runs } from './runs.ts';
import { PASSING_CAUSES, STOP_REASONS, type StopCause } from './stop-causes.ts';
import type { VmDeleter } from './vm-deleter.ts';
import type { VmRow, VmStore } from './vm-store.ts';

export interface AccountStopsDeps {
  readonly store: VmStore;
  readonly actions: Actions;
  readonly runs: Runs;
  readonly power: PowerControl;
  readonly deleter: VmDeleter;
  /** How long a guest is asked to shut down, ms. */
  readonly graceMs: number;
  readonly onError: (vmId: string, what: string, error: unknown) => void;
}

const REMOVED_TOGETHER = 16;
const BY_CLOUDLET: MachineCall = { ...UNASKED, principal: 'administrator' };

interface Halt {
  /** Whether the machine, as it is when its turn comes, is to be stopped. */
  readonly isDue: (row: VmRow) => boolean;
  /** Without: the one that its stop began with. */
  readonly reason?: Reason;
}

export class AccountStops {
  readonly #deps: AccountStopsDeps;

  constructor(deps: AccountStopsDeps) {
    this.#deps = deps;
  }

  /**
   * Resolves when all that could be stopped are, and deleted when the account was closed: nobody could use
   * them any more. May be repeated; what failed is reported.
   */
  async stop(accountId: number, cause: StopCause): Promise<void> {
    const rows = await this.#deps.store.listUp(accountId);
    const failure = `it could not be stopped (${cause})`;
    await this.#each(rows, failure, (row) =>
      this.#halt(row.vm_id, { isDue: isUp, reason: STOP_REASONS[cause] }),
    );
    if (cause === 'account_closed') await this.#removeAll(accountId);
  }

  async #removeAll(accountId: number): Promise<void> {
    const reason = STOP_REASONS.account_closed;
    for (let after = 0; ; ) {
      const rows = await this.#deps.store.listOf(accountId, after, REMOVED_TOGETHER);
      await this.#each(rows, 'it could not be deleted with its account', async ({ vm_id: vmId }) => {
        // One that never ran has to be stopped, too.
        await this.#halt(vmId, { isDue: ({ state }) => state !== 'deleting', reason });
        await this.#deps.deleter.remove(BY_CLOUDLET, vmId);
      });
      after = rows.at(-1)?.id ?? after;
      if (rows.length < REMOVED_TOGETHER) return;
    }
  }

  /**
   * Starts what stop() stopped and nobody has touched since, unless its account was closed; `waiting`: how
   * many are still stopped.
   */
  async resume(accountId: number): Promise<{ readonly waiting: number }> {
    const { store } = this.#deps;
    const stopped = await store.listStopped(accountId, PASSING_CAUSES);
    await this.#each(stopped, 'it could not be started again', (row) => this.#startAgain(row));
    return { waiting: (await store.listStopped(accountId, PASSING_CAUSES)).length };
  }

  /** After its stop: a crash may have cut it off, and the reconciler, which knows no resumption, be at it. */
  async #startAgain(row: VmRow): Promise<void> {
    const { store, power } = this.#deps;
    const find = async () => (await store.find(row.vm_id)) ?? row;
    if (row.state === 'stopping') {
      await this.#halt(row.vm_id, { isDue: ({ state }) => state === 'stopping' });
      if ((await find()).reason_code !== row.reason_code) return; // somebody was faster
    }
    await power.startOwned(row.vm_id, find);
  }

  /** After a start that is under way: nobody else would stop what it leads to. */
  async #halt(vmId: string, { isDue, reason }: Halt): Promise<void> {
    const { actions, runs, graceMs } = this.#deps;
    for (;;) {
      try {
        const find = () => this.#find(vmId);
        await actions.run({ vmId, action: 'stop', find }, async (row, signal) =>
          isDue(row) ? runs.halt(row, { graceMs, signal, call: UNASKED, reason }) : row,
        );
        return;
      } catch (error) {
        if (!isAppError(error, 'vm_locked')) throw error;
      }
      await actions.runExclusive(vmId, async () => {});
    }
  }

  async #find(vmId: string): Promise<VmRow> {
    const row = await this.#deps.store.find(vmId);
    if (row === undefined) throw new Error('the machine is gone');
    return row;
  }

  async #each(rows: readonly VmRow[], failure: string, work: (row: VmRow) => Promise<unknown>) {
    const outcomes = await Promise.allSettled(rows.map(work));
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === 'rejected') this.#deps.onError(rows[i]?.vm_id ?? '', failure, outcome.reason);
    }
  }
}
