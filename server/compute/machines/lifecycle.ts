/** Changes of a machine's state: each is one commit that includes its usage. */
import { BACKGROUND, type Changes, type Recorder } from '../../metadata/change.ts';
import type { Statement } from '../../metadata/metadata.ts';
import type { Clock } from '../../platform/clock.ts';
import {
  type Announce,
  eventOf,
  nextRow,
  type Reason,
  type ResourceEvent,
  writeConflict,
} from '../../resources/row-change.ts';
import type { Hypervisor } from '../hypervisor.ts';
import { INSTANCE_TYPES } from '../instance-types.ts';
import { accountBlocked, nextState, type VmEvent } from './transitions.ts';
import type { VmBilling } from './vm-billing.ts';
import type { VmRow, VmStore } from './vm-store.ts';
import type { VmViews } from './vm-view.ts';

/** A change of a machine's state, with the changed columns. */
export interface Happening {
  readonly event: VmEvent;
  readonly desired?: VmRow['desired_state'];
  /** Default: clears an earlier reason. */
  readonly reason?: Reason | undefined;
  readonly run?: NewRun;
  /** End of the run, ms since 1970; default: now. */
  readonly endedAt?: number | undefined;
  /** Response of the call; default: the machine after the change. */
  readonly answer?: unknown;
}

/** Columns of the row that a run sets. */
export interface NewRun {
  readonly handle: string;
  readonly accel: string;
  readonly accel_reason: string;
  readonly started_at: number;
}

const NO_RUN = { handle: null, accel: null, accel_reason: null, started_at: null, ready_at: null };

interface LifecycleDeps {
  readonly changes: Changes;
  readonly store: VmStore;
  readonly clock: Clock;
  readonly views: VmViews;
  /** Queues the owner's webhooks in the same commit. */
  readonly announce: Announce<VmEventType>;
  readonly billing: Pick<
    VmBilling,
    'memoryTaken' | 'shareTaken' | 'reserved' | 'released' | 'started' | 'stopped' | 'deleted'
  >;
  readonly hypervisor: Pick<Hypervisor, 'memoryForGuestsMb'>;
  /** Share of the memory that accounts without granted credits may have together, percent. */
  readonly ungrantedMemoryPercent: number;
}

/** At least this many accounts are needed to fill the share without granted credits. */
const ACCOUNTS_TO_FILL = 4;
/** Every share has room for one machine of the smallest type. */
const LEAST_SHARE_MB = Math.min(...INSTANCE_TYPES.map(({ memoryMb }) => memoryMb));

export class Lifecycle {
  readonly #deps: LifecycleDeps;

  constructor(deps: LifecycleDeps) {
    this.#deps = deps;
  }

  /**
   * Stores the state after `happening.event`, with the response to `call`. Throws the refusals of
   * the transition table, `write_conflict` if the row has changed since it was read, and, for a
   * start, `insufficient_credits`, `quota_exceeded`, `insufficient_capacity` and
   * `account_suspended`.
   */
  async apply(before: VmRow, happening: Happening, call: Recorder = BACKGROUND): Promise<VmRow> {
    const { changes, clock, store, announce, views } = this.#deps;
    const now = clock.now();
    const row = changed(before, happening, now);
    const event = eventFor(before, row, now);
    await changes.run(call, async (change) => {
      change.expect(store.update(row), () => writeConflict('machine'));
      change.addAll(this.#usage(before, row, happening.endedAt ?? now));
      if (row.state === 'starting' && before.state !== 'starting') {
        change.expect(store.expectNoBlock(row.account_id), accountBlocked);
      }
      // A concurrent change spent the same credits.
      change.addAll(await this.#credits(before, row), 'retry');
      if (event !== undefined) change.addAll(announce(event));
      return happening.answer ?? views.present(row);
    });
    return row;
  }

  /** An hour's price and the memory are reserved from the start of a run to its end. */
  async #credits(before: VmRow, after: VmRow): Promise<readonly Statement[]> {
    const { billing } = this.#deps;
    if (after.state === before.state) return [];
    if (after.state === 'starting') {
      const memory = isUp(before) ? [] : await this.#memory(after);
      return [...memory, ...(await billing.reserved(after))];
    }
    return isUp(after) ? [] : billing.released(after);
  }

  async #memory(row: VmRow): Promise<readonly Statement[]> {
    const { billing, hypervisor, ungrantedMemoryPercent: percent } = this.#deps;
    const ofAccount = await billing.memoryTaken(row);
    if (percent === 100) return ofAccount;
    const shareMb = Math.floor((hypervisor.memoryForGuestsMb() * percent) / 100);
    const allMb = Math.max(shareMb, LEAST_SHARE_MB);
    const eachMb = Math.max(Math.floor(shareMb / ACCOUNTS_TO_FILL), LEAST_SHARE_MB);
    return [...ofAccount, ...(await billing.shareTaken(row, { allMb, eachMb }))];
  }

  /** A run's start or end is counted in the commit that stores it. */
  #usage(before: VmRow, after: VmRow, endedAt: number): Statement[] {
    const { store, billing } = this.#deps;
    const statements: Statement[] = [];
    if (before.started_at !== null && after.started_at !== before.started_at) {
      const end = Math.max(before.started_at, Math.min(endedAt, this.#deps.clock.now()));
      statements.push(store.usage(before, 'stopped', end), ...billing.stopped(before, end));
    }
    if (after.started_at !== null && after.started_at !== before.started_at) {
      const at = after.started_at;
      const usage = [store.usage(after, 'started', at), store.forgetUsage(after)];
      statements.push(...usage, ...billing.started(after, at));
    }
    if (after.state === 'deleting' && before.state !== 'deleting') {
      statements.push(store.usage(after, 'deleted', after.state_changed_at), ...billing.deleted(after));
    }
    return statements;
  }
}

/** Whether the machine runs, may run after an error, or is about to start or stop. */
export function isUp({ state, started_at }: VmRow): boolean {
  return started_at !== null || state === 'starting' || state === 'stopping';
}

/** In `error` the run may continue: only a stop or the guest's end ends it. */
const WITH_RUN = ['running', 'stopping', 'error'];

function changed(before: VmRow, { event, desired, reason, run, endedAt }: Happening, now: number): VmRow {
  const state = nextState(before.state, event);
  const isOver = !WITH_RUN.includes(state) || event === 'crashed' || endedAt !== undefined;
  const wanted = {
    ...(isOver ? NO_RUN : {}),
    ...run,
    state,
    address: state === 'deleting' ? null : before.address,
    desired_state: desired ?? before.desired_state,
    reason_code: reason?.code ?? null,
    reason_message: reason?.message ?? null,
  };
  return nextRow(before, wanted, now);
}

export type VmEventType =
  `vm.${'started' | 'stopped' | 'failed' | 'deleted' | 'changed' | 'port_changed' | 'ssh_key_lent' | 'tunnel_opened' | 'tunnel_closed'}`;

/** undefined: the change is no event, or only an intermediate step. */
export function eventFor(before: VmRow, after: VmRow, at: number): ResourceEvent<VmEventType> | undefined {
  const type = typeOf(before, after);
  if (type === undefined) return undefined;
  const { vm_id, instance_type } = after;
  return eventOf(type, after, { at, vm_id, instance_type, ip_address: before.address });
}

function typeOf(before: VmRow, after: VmRow): VmEventType | undefined {
  if (after.state === 'running') return after.started_at === before.started_at ? undefined : 'vm.started';
  if (after.state === before.state) return undefined;
  if (after.state === 'deleting') return 'vm.deleted';
  if (after.state === 'error') return 'vm.failed';
  // Back to the state before a start that was not possible.
  if (before.state === 'starting' && after.state !== 'stopping') return 'vm.failed';
  // The host went down while it ran.
  if (before.state === 'running' && after.state === 'starting') return 'vm.stopped';
  // A machine that never started stops without an event.
  return after.state === 'stopped' && before.state !== 'created' ? 'vm.stopped' : undefined;
}
