/** Looks after all machines: at the start of Cloudlet, when a guest ends, and from time to time. */
import type { Clock } from '../../platform/clock.ts';
import { eachOf } from '../../platform/each-of.ts';
import { idTime, isId } from '../../platform/ids.ts';
import type { SweepGuard } from '../../platform/sweep-guard.ts';
import type { GuestEnd, GuestFact, Hypervisor } from '../hypervisor.ts';
import type { Actions } from './actions.ts';
import type { OnError } from './exposures.ts';
import type { Machines } from './machines.ts';
import type { Reconciler } from './reconcile.ts';
import type { Runs } from './runs.ts';
import type { VmRow, VmStore } from './vm-store.ts';

export interface SupervisorDeps {
  readonly store: VmStore;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly machines: Machines;
  readonly actions: Actions;
  readonly runs: Runs;
  readonly reconciler: Reconciler;
  readonly sweepGuard: SweepGuard;
  readonly onError: OnError;
  /** How long a guest without a row is left alone after it was made and first noticed, ms. */
  readonly orphanGraceMs: number;
}

const LIST_STEP = 1000;
/** Machines looked after at the same time: each may be a boot. */
const AT_ONCE = 2;

export class Supervisor {
  readonly #deps: SupervisorDeps;
  /** Guests without a row → when they were first noticed, monotonic ms. */
  readonly #orphans = new Map<string, number>();
  #recovered: Promise<void> = Promise.resolve();
  #isClosing = false;

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
  }

  /** Begins to look after what was left by the last run of Cloudlet. Does not wait for it. */
  start(): void {
    this.#deps.hypervisor.onEnd((end) => void this.#noteEnd(end));
    this.#recovered = this.#recover().catch((error: unknown) =>
      this.#deps.onError('', 'machines could not be looked after', error),
    );
  }

  /** Resolves when every machine that start() found was looked after. */
  recovered(): Promise<void> {
    return this.#recovered;
  }

  /** Looks after machines that run, and those whose start, stop or deletion was left half-way. */
  async check(): Promise<void> {
    const rows = await this.#deps.store.listActive();
    await this.#reconcileAll(rows, { isSure: false });
  }

  /** Removes guests that no row knows: their creation was cut off before its commit. */
  async sweepOrphans(): Promise<void> {
    const { hypervisor, clock, sweepGuard, orphanGraceMs } = this.#deps;
    const facts = await hypervisor.list();
    const now = clock.monotonic();
    const orphans: string[] = [];
    for (const { vmId } of facts) if (await this.#isOrphan(vmId)) orphans.push(vmId);
    for (const known of this.#orphans.keys()) if (!orphans.includes(known)) this.#orphans.delete(known);
    const sweep = { folder: 'vms', what: 'machines', found: facts.length, unnamed: orphans.length };
    if (!(await sweepGuard.allows(sweep))) return;
    for (const vmId of orphans) {
      const noticed = this.#orphans.get(vmId) ?? now;
      this.#orphans.set(vmId, noticed);
      const isOld = now - noticed >= orphanGraceMs && clock.now() - idTime(vmId) >= orphanGraceMs;
      if (isOld && !this.#isClosing) await this.#removeOrphan(vmId);
    }
  }

  /** Begins nothing more; resolves when what runs has ended. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#recovered;
    await this.#deps.actions.idle();
  }

  async #recover(): Promise<void> {
    const { hypervisor } = this.#deps;
    const rows = await this.#allRows();
    const running = new Map<string, GuestFact>();
    try {
      for (const fact of await hypervisor.list()) if (fact.running) running.set(fact.vmId, fact);
      await hypervisor.adopt(rows.flatMap(({ vm_id }) => running.get(vm_id) ?? []));
    } catch (error) {
      // Each machine is asked for by itself below.
      this.#deps.onError('', 'running guests could not be listed', error);
    }
    const unsettled = rows.filter((row) => needsLook(row) || running.has(row.vm_id));
    await this.#reconcileAll(unsettled, { isSure: true });
  }

  async #allRows(): Promise<VmRow[]> {
    const rows: VmRow[] = [];
    for (let step = LIST_STEP; step === LIST_STEP; ) {
      const page = await this.#deps.store.list(rows.at(-1)?.id ?? 0, LIST_STEP);
      rows.push(...page);
      step = page.length;
    }
    return rows;
  }

  async #reconcileAll(rows: readonly VmRow[], how: { readonly isSure: boolean }): Promise<void> {
    await eachOf(rows, AT_ONCE, async ({ vm_id }) => {
      if (this.#isClosing) return;
      try {
        await this.#deps.reconciler.reconcile(vm_id, how);
      } catch (error) {
        this.#deps.onError(vm_id, 'it could not be looked after', error);
      }
    });
  }

  async #noteEnd(end: GuestEnd): Promise<void> {
    const { actions, runs, onError } = this.#deps;
    try {
      // After what runs: a start under way has yet to store which run this is.
      await actions.runExclusive(end.vmId, () => runs.noteEnd(end));
    } catch (error) {
      onError(end.vmId, 'its end was not stored', error);
    }
  }

  async #isOrphan(vmId: string): Promise<boolean> {
    const { machines, store } = this.#deps;
    // Being created is asked first: its row may come between the two questions.
    if (!isId('vm', vmId) || machines.isBeingCreated(vmId)) return false;
    return (await store.find(vmId)) === undefined;
  }

  async #removeOrphan(vmId: string): Promise<void> {
    const { hypervisor, onError } = this.#deps;
    try {
      await hypervisor.stop(vmId, { graceMs: 0 });
      await hypervisor.discard(vmId);
      this.#orphans.delete(vmId);
    } catch (error) {
      onError(vmId, 'a guest that no row knows could not be removed', error);
    }
  }
}

function needsLook({ state, started_at }: VmRow): boolean {
  return started_at !== null || ['starting', 'running', 'stopping', 'deleting'].includes(state);
}
