/** Reconciles all machines: at the start of Cloudlet, when a guest ends, and at intervals. */
import { listRows } from '../../metadata/list.ts';
import type { SweepGuard } from '../../platform/background/sweep-guard.ts';
import type { Clock } from '../../platform/clock.ts';
import { idTime, isId } from '../../platform/ids.ts';
import { type Orphan, Supervision } from '../../resources/supervision.ts';
import type { GuestEnd, GuestFact, Hypervisor } from '../hypervisor.ts';
import type { OnError } from './exposures.ts';
import type { Machines } from './machines.ts';
import type { Reconciler } from './reconcile.ts';
import type { Runs } from './runs.ts';
import type { MachineTurns } from './transitions.ts';
import type { VmRow, VmStore } from './vm-store.ts';

export interface SupervisorDeps {
  readonly store: VmStore;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly machines: Machines;
  readonly turns: MachineTurns;
  readonly runs: Runs;
  readonly reconciler: Reconciler;
  readonly sweepGuard: SweepGuard;
  readonly onError: OnError;
  /** How long a guest without a row is kept after it was created and first noticed, ms. */
  readonly orphanGraceMs: number;
}

/** Machines reconciled in parallel: each may boot. */
const AT_ONCE = 2;

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #supervision: Supervision;
  #recovered: Promise<void> = Promise.resolve();

  constructor(deps: SupervisorDeps) {
    this.#deps = deps;
    this.#supervision = new Supervision({ ...deps, atOnce: AT_ONCE });
  }

  /** Starts reconciling the machines of the previous Cloudlet process, in the background. */
  start(): void {
    this.#deps.hypervisor.onEnd((end) => void this.#noteEnd(end));
    this.#recovered = this.#recover().catch((error: unknown) =>
      this.#deps.onError('', 'reconciling machines failed', error),
    );
  }

  /** Resolves when every machine that start() found was reconciled. */
  recovered(): Promise<void> {
    return this.#recovered;
  }

  /** Reconciles running machines, and those whose start, stop or deletion was interrupted. */
  async check(): Promise<void> {
    const rows = await this.#deps.store.listActive();
    await this.#reconcileAll(rows, { isSure: false });
  }

  /** Removes guests without a row: their creation was interrupted before its commit. */
  async sweepOrphans(): Promise<void> {
    const { hypervisor, clock, orphanGraceMs } = this.#deps;
    const facts = await hypervisor.list();
    const orphans = new Map<string, Orphan>();
    for (const { vmId } of facts) {
      if (!(await this.#isOrphan(vmId))) continue;
      const isYoung = clock.now() - idTime(vmId) < orphanGraceMs;
      orphans.set(vmId, { remove: () => this.#removeOrphan(vmId), isYoung });
    }
    await this.#supervision.sweep({ folder: 'vms', what: 'machines', count: facts.length, orphans });
  }

  /** Accepts no new work; resolves when running work has ended. */
  async close(): Promise<void> {
    const { turns } = this.#deps;
    await Promise.all([turns.close(), this.#recovered]);
    await turns.idle();
  }

  async #recover(): Promise<void> {
    const { hypervisor, store } = this.#deps;
    const list = listRows({ after: 0, limit: Infinity }, (after, limit) => store.list(after, limit));
    const rows = await Array.fromAsync(list);
    const running = new Map<string, GuestFact>();
    try {
      for (const fact of await hypervisor.list()) if (fact.running) running.set(fact.vmId, fact);
      await hypervisor.adopt(rows.flatMap(({ vm_id }) => running.get(vm_id) ?? []));
    } catch (error) {
      // Each machine is inspected by itself below.
      this.#deps.onError('', 'listing running guests failed', error);
    }
    const unsettled = rows.filter((row) => needsReconcile(row) || running.has(row.vm_id));
    await this.#reconcileAll(unsettled, { isSure: true });
  }

  async #reconcileAll(rows: readonly VmRow[], how: { readonly isSure: boolean }): Promise<void> {
    const ids = rows.map(({ vm_id }) => vm_id);
    const reconcile = (id: string) => this.#deps.reconciler.reconcile(id, how);
    await this.#supervision.each(ids, (id) => this.#supervision.attempt(id, () => reconcile(id)));
  }

  /** Waits for a start in progress, which has yet to store its run. Never rejects. */
  async #noteEnd(end: GuestEnd): Promise<void> {
    const { turns, runs, onError } = this.#deps;
    const noted = turns.withRow(end.vmId, (row) => runs.noteEnd(row, end));
    await noted.catch((error: unknown) => onError(end.vmId, 'storing the end of a machine failed', error));
  }

  async #isOrphan(vmId: string): Promise<boolean> {
    const { machines, store } = this.#deps;
    // Creations are checked first: the row may be stored between the two queries.
    if (!isId('vm', vmId) || machines.isBeingCreated(vmId)) return false;
    return (await store.find(vmId)) === undefined;
  }

  async #removeOrphan(vmId: string): Promise<void> {
    await this.#deps.hypervisor.stop(vmId, { graceMs: 0 });
    await this.#deps.hypervisor.discard(vmId);
  }
}

function needsReconcile({ state, started_at }: VmRow): boolean {
  return started_at !== null || ['starting', 'running', 'stopping', 'deleting'].includes(state);
}
