/** Changes of a machine's state: each one commit, with what it means for usage. */
import type { Clock } from '../clock.ts';
import { AppError } from '../errors.ts';
import { CommitRejected, type Metadata, type Statement } from '../metadata/metadata.ts';
import type { VmRow, VmStore } from './store.ts';
import { nextState, type VmEvent } from './transitions.ts';

export interface Reason {
  readonly code: string;
  readonly message: string;
}

/** What else changes with the state; what is not named stays. */
export interface Change {
  readonly event: VmEvent;
  readonly desired?: VmRow['desired_state'];
  /** Without one, an earlier reason is gone. */
  readonly reason?: Reason;
  readonly run?: NewRun;
  /** When the run that is over ended, ms since 1970; default now. */
  readonly endedAt?: number;
  /** Written in the same commit. */
  readonly also?: (row: VmRow) => readonly Statement[];
}

export interface NewRun {
  readonly handle: string;
  readonly accel: string;
  readonly accelReason: string;
  readonly startedAt: number;
}

export interface ChangesDeps {
  readonly metadata: Metadata;
  readonly store: VmStore;
  readonly clock: Clock;
}

export class Changes {
  readonly #deps: ChangesDeps;

  constructor(deps: ChangesDeps) {
    this.#deps = deps;
  }

  /**
   * Stores the state after `change.event`. Throws what the table of transitions refuses, and
   * `write_conflict` when the row has changed since it was read.
   */
  async apply(before: VmRow, change: Change): Promise<VmRow> {
    const now = this.#deps.clock.now();
    const row = changed(before, change, now);
    const statements = [this.#deps.store.update(row), ...this.#usage(before, row, change.endedAt ?? now)];
    try {
      await this.#deps.metadata.commit([...statements, ...(change.also?.(row) ?? [])]);
    } catch (error) {
      if (!(error instanceof CommitRejected) || error.index !== 0) throw error;
      throw new AppError('write_conflict', 'The machine was changed meanwhile; try again', { cause: error });
    }
    return row;
  }

  /** A run that began or ended is counted by the very commit that says so. */
  #usage(before: VmRow, after: VmRow, endedAt: number): Statement[] {
    const { store } = this.#deps;
    const statements: Statement[] = [];
    if (before.started_at !== null && after.started_at !== before.started_at) {
      const end = Math.max(before.started_at, Math.min(endedAt, this.#deps.clock.now()));
      statements.push(store.usage(before, 'stopped', end));
    }
    if (after.started_at !== null && after.started_at !== before.started_at) {
      statements.push(store.usage(after, 'started', after.started_at));
    }
    if (after.state === 'deleting' && before.state !== 'deleting') {
      statements.push(store.usage(after, 'deleted', after.state_changed_at));
    }
    return statements;
  }
}

/** Of an error's run it is not known whether it is over: only a stop, or its end, ends it. */
const WITH_RUN = ['running', 'stopping', 'error'];

function changed(before: VmRow, { event, desired, reason, run, endedAt }: Change, now: number): VmRow {
  const state = nextState(before.state, event);
  const isOver = !WITH_RUN.includes(state) || event === 'crashed' || endedAt !== undefined;
  const kept = isOver
    ? { handle: null, accel: null, accel_reason: null, started_at: null, ready_at: null }
    : {};
  const begun =
    run === undefined
      ? {}
      : {
          handle: run.handle,
          accel: run.accel,
          accel_reason: run.accelReason,
          started_at: run.startedAt,
        };
  return {
    ...before,
    ...kept,
    ...begun,
    state,
    address: state === 'deleting' ? null : before.address,
    desired_state: desired ?? before.desired_state,
    generation: before.generation + 1,
    reason_code: reason?.code ?? null,
    reason_message: reason?.message ?? null,
    state_changed_at: state === before.state ? before.state_changed_at : now,
  };
}
