/** The table of steps that repair a machine whose row and guest disagree after a crash. */

import { BACKGROUND } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import type { AccountBlock } from '../../resources/account-stops.ts';
import type { GuestFact, Hypervisor, LastEnd } from '../hypervisor.ts';
import type { Exposures } from './exposures.ts';
import { CRASHED_UNSEEN, HOST_RESTARTED, type Runs, type UnseenEnd } from './runs.ts';
import {
  type MachineTurns,
  stoppedBecause,
  type VmAction,
  type VmState,
  type VmWanted,
} from './transitions.ts';
import type { VmDeleter } from './vm-deleter.ts';
import type { VmRow, VmStore } from './vm-store.ts';

export type ReconcileStep =
  | 'leave'
  /** The guest runs, as it should: monitor it. */
  | 'adopt'
  /** Finish the start. */
  | 'start'
  /** Finish the stop. */
  | 'stop'
  /** The guest runs although it should not: end it; the row is right. */
  | 'end_stray'
  /** The guest is gone although it should run. */
  | 'note_gone'
  | 'delete';

/** Indexed by the row's state and by whether the engine reports the guest as running. */
const TABLE: Readonly<Record<VmState, { readonly runs: ReconcileStep; readonly gone: ReconcileStep }>> = {
  created: { runs: 'end_stray', gone: 'leave' },
  starting: { runs: 'start', gone: 'start' },
  running: { runs: 'adopt', gone: 'note_gone' },
  stopping: { runs: 'stop', gone: 'stop' },
  stopped: { runs: 'end_stray', gone: 'leave' },
  error: { runs: 'stop', gone: 'note_gone' },
  deleting: { runs: 'delete', gone: 'delete' },
};

export function reconcileStep(state: VmState, runs: boolean): ReconcileStep {
  return TABLE[state][runs ? 'runs' : 'gone'];
}

/** A machine's row, its guest in the engine, and its account. */
interface Found {
  readonly row: VmRow;
  readonly fact: GuestFact;
  /** The block of its account. */
  readonly block: AccountBlock | null;
}

export interface ReconcilerDeps {
  readonly store: VmStore;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly turns: MachineTurns;
  readonly runs: Runs;
  readonly deleter: VmDeleter;
  readonly exposures: Exposures;
  readonly graceMs: number;
}

export class Reconciler {
  readonly #deps: ReconcilerDeps;
  /** Machines whose guest was missing once: machine → generation of its row. */
  readonly #suspects = new Map<string, number>();

  constructor(deps: ReconcilerDeps) {
    this.#deps = deps;
  }

  /**
   * Reconciles row and guest. Does nothing while an action runs on the machine, which knows more. A
   * missing guest counts from the second time, unless `isSure`: a report of its end may be on its
   * way. Throws the engine's error, which the row then shows too.
   */
  async reconcile(vmId: string, { isSure }: { readonly isSure: boolean }): Promise<void> {
    const { hypervisor, store, turns } = this.#deps;
    const before = await store.find(vmId);
    if (before === undefined || turns.isBusy(vmId)) return;
    const fact = await hypervisor.inspect(vmId);
    const block = await store.blockOf(before.account_id);
    const row = await store.find(vmId);
    if (row?.generation !== before.generation || turns.isBusy(vmId)) return;
    const step = reconcileStep(row.state, fact.running);
    const isSuspect = this.#suspects.get(vmId) === row.generation;
    this.#suspects.delete(vmId);
    if (step === 'note_gone' && !isSure && !isSuspect) {
      this.#suspects.set(vmId, row.generation);
      return;
    }
    try {
      await this.#apply(step, { row, fact, block });
    } catch (error) {
      if (!isAppError(error, 'vm_locked')) throw error;
    }
  }

  /** The row was just read synchronously: no other action can come between. */
  async #apply(step: ReconcileStep, found: Found): Promise<void> {
    const { turns, deleter, hypervisor, graceMs } = this.#deps;
    const { row, fact } = found;
    const vmId = row.vm_id;
    if (step === 'adopt') await this.#adopt(row, fact);
    if (step === 'start') await this.#start(found);
    if (step === 'stop') await this.#stop(found);
    if (step === 'end_stray') await turns.run(vmId, () => hypervisor.stop(vmId, { graceMs }));
    if (step === 'note_gone') await this.#noteGone(found);
    if (step === 'delete') await turns.act(known('delete', row), () => deleter.finish(row));
  }

  async #start({ row, fact, block }: Found): Promise<void> {
    if (block !== null) return this.#stop({ row, block });
    await this.#deps.turns.act(known('start', row), () => this.#boot(row, fact.runningSince));
  }

  async #stop({ row, block }: Pick<Found, 'row' | 'block'>): Promise<void> {
    const { turns, runs, graceMs } = this.#deps;
    const reason = block === null ? undefined : stoppedBecause(block);
    await turns.act(known('stop', row), (_, signal) =>
      runs.halt(row, { graceMs, call: BACKGROUND, signal, reason }),
    );
  }

  async #adopt(row: VmRow, fact: GuestFact): Promise<void> {
    if (row.handle === fact.handle) {
      await this.#deps.exposures.open(row);
      this.#deps.exposures.begin(row.vm_id);
      return;
    }
    // If the engine has another run than the row, the engine is right.
    await this.#deps.turns.act(known('start', row), () => this.#boot(row, fact.runningSince));
  }

  async #noteGone({ row, fact, block }: Found): Promise<void> {
    const { turns, runs } = this.#deps;
    const vmId = row.vm_id;
    // The end of another run does not apply to this one.
    const end = fact.end?.handle === row.handle ? fact.end : null;
    const wentWithHost = this.#wentWithHost(row, end);
    if (end !== null && end.cause !== 'host_restarted' && !wentWithHost) {
      await turns.withRow(vmId, (now) => runs.noteEnd(now, { vmId, ...end }));
      return;
    }
    const gone = wentWithHost ? afterHostRestart(block) : CRASHED_UNSEEN;
    const after = await turns.run(vmId, () => runs.noteGone(row, gone, end?.at ?? null));
    if (after.state !== 'starting') return;
    await turns.act(known('start', after), () => this.#boot(after, null));
  }

  #boot(row: VmRow, since: number | null): Promise<VmRow> {
    return this.#deps.runs.boot(row, { before: 'stopped', call: BACKGROUND, since });
  }

  /** True when no guest can have survived the host's restart, so that a reported end does not apply. */
  #wentWithHost({ state, desired_state, started_at }: VmRow, end: LastEnd | null): boolean {
    if (state !== 'running' || desired_state !== 'running' || started_at === null) return false;
    return !this.#deps.hypervisor.capabilities.survivesRestart || end?.cause === 'host_restarted';
  }
}

/** An action on a row that was just read. */
function known(action: VmAction, row: VmRow): VmWanted {
  return { id: row.vm_id, action, find: () => row };
}

/** Machines of a blocked account are not restarted, but stopped. */
function afterHostRestart(block: AccountBlock | null): UnseenEnd {
  if (block === null) return HOST_RESTARTED;
  return { event: 'powered_off', desired: 'stopped', reason: stoppedBecause(block) };
}
