/** Stops the machines of an account that has no credits left, or is closed, and starts the former again. */
import type { Actions } from './actions.ts';
import type { Reason } from './changes.ts';
import type { Power } from './power.ts';
import { noVmReceipt, type Runs } from './runs.ts';
import type { VmRow, VmStore } from './store.ts';

export interface CreditStopsDeps {
  readonly store: VmStore;
  readonly actions: Actions;
  readonly runs: Runs;
  readonly power: Power;
  /** How long a guest is asked to shut down, ms. */
  readonly graceMs: number;
  readonly report: (vmId: string, what: string, error: unknown) => void;
}

/** Tells those that the system stopped from those that their owner did. */
const REASON = { code: 'credits_exhausted', message: 'It was stopped because no credits were left' };
const CLOSED = { code: 'account_closed', message: 'It was stopped because its account was closed' };

export class CreditStops {
  readonly #deps: CreditStopsDeps;

  constructor(deps: CreditStopsDeps) {
    this.#deps = deps;
  }

  /** Resolves when all that could be stopped are. May be repeated; what failed is reported. */
  async stopForCredits(accountId: number): Promise<void> {
    await this.#stop(accountId, { reason: REASON, failure: 'it could not be stopped for want of credits' });
  }

  /** As stopForCredits(), but nothing of it is started again. */
  async stopOfClosed(accountId: number): Promise<void> {
    await this.#stop(accountId, { reason: CLOSED, failure: 'it could not be stopped with its account' });
  }

  async #stop(accountId: number, { reason, failure }: { reason: Reason; failure: string }): Promise<void> {
    const { store, actions, runs, graceMs } = this.#deps;
    const active = (await store.listActive()).filter((row) => row.account_id === accountId);
    await this.#each(active, failure, (row) =>
      actions.run(row.vm_id, 'stop', async (hurry) => {
        const now = await this.#present(row);
        if (now.started_at === null) return now;
        return runs.halt(now, { graceMs, hurry, receipt: noVmReceipt, reason });
      }),
    );
  }

  /** Starts what stopForCredits() stopped and nobody has touched since; `waiting`: what is still stopped. */
  async resumeAfterCredits(accountId: number): Promise<{ readonly waiting: number }> {
    const { store, power } = this.#deps;
    const stopped = await store.listStopped(accountId, REASON.code);
    await this.#each(stopped, 'it could not be started again', (row) =>
      power.startOwned(row.vm_id, () => this.#present(row)),
    );
    return { waiting: (await store.listStopped(accountId, REASON.code)).length };
  }

  async #present(row: VmRow): Promise<VmRow> {
    return (await this.#deps.store.find(row.vm_id)) ?? row;
  }

  async #each(rows: readonly VmRow[], failure: string, work: (row: VmRow) => Promise<unknown>) {
    const outcomes = await Promise.allSettled(rows.map(work));
    for (const [i, outcome] of outcomes.entries()) {
      if (outcome.status === 'rejected') this.#deps.report(rows[i]?.vm_id ?? '', failure, outcome.reason);
    }
  }
}
