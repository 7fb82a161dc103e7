/** The state machine of machines, and why the system stops one. A cause is the reason code that is shown. */
import { AppError } from '../../platform/errors.ts';
import { type StopCause, stopReason } from '../../resources/account-stops.ts';
import type { Reason } from '../../resources/row-change.ts';
import type { Turns, Wanted } from '../../resources/turns.ts';
import type { VmRow } from './vm-store.ts';

export const VM_STATES = [
  'created',
  'starting',
  'running',
  'stopping',
  'stopped',
  'error',
  'deleting',
] as const;
export type VmState = (typeof VM_STATES)[number];

/** Actions of the owner. */
const VM_ACTIONS = ['start', 'stop', 'delete'] as const;
export type VmAction = (typeof VM_ACTIONS)[number];

export const VM_EVENTS = [
  ...VM_ACTIONS,
  /** The guest's CPU runs. */
  'started',
  /** The start is not possible for now: back to the state before. */
  'not_started_new',
  'not_started',
  /** The engine failed for an unknown reason. */
  'failed',
  /** The requested stop is done. */
  'halted',
  /** The guest ended by itself. */
  'powered_off',
  'crashed',
  /** The host went down while it ran; its desired state is running. */
  'host_restarted',
] as const;
export type VmEvent = (typeof VM_EVENTS)[number];

type Refusal = 'vm_invalid_state' | 'vm_not_stopped';
export type Transition = { readonly to: VmState } | { readonly refused: Refusal };

/** An action whose target state is already reached succeeds. Missing entries are refused. */
const TABLE: Readonly<Record<VmState, Readonly<Partial<Record<VmEvent, VmState>>>>> = {
  created: { start: 'starting', stop: 'stopped' },
  starting: {
    start: 'starting',
    stop: 'stopping',
    started: 'running',
    not_started_new: 'created',
    not_started: 'stopped',
    failed: 'error',
  },
  running: {
    start: 'running',
    stop: 'stopping',
    started: 'running',
    powered_off: 'stopped',
    crashed: 'error',
    host_restarted: 'starting',
  },
  stopping: {
    stop: 'stopping',
    halted: 'stopped',
    failed: 'error',
    powered_off: 'stopped',
    crashed: 'stopped',
  },
  stopped: { start: 'starting', stop: 'stopped', delete: 'deleting' },
  // The guest may still run, so a stop goes through the engine.
  error: { start: 'starting', stop: 'stopping', powered_off: 'stopped', crashed: 'error' },
  deleting: { delete: 'deleting' },
};

export function transition(state: VmState, event: VmEvent): Transition {
  const to = TABLE[state][event];
  if (to !== undefined) return { to };
  return { refused: event === 'delete' ? 'vm_not_stopped' : 'vm_invalid_state' };
}

/** Actions allowed in this state. */
export function allowedActions(state: VmState): readonly VmAction[] {
  return VM_ACTIONS.filter((action) => 'to' in transition(state, action));
}

/** The state after `event`. Throws `vm_invalid_state` or `vm_not_stopped` with the allowed actions. */
export function nextState(state: VmState, event: VmEvent): VmState {
  const found = transition(state, event);
  if ('to' in found) return found.to;
  const allowed = allowedActions(state);
  const possible = allowed.length === 0 ? 'no action is allowed now' : `allowed: ${allowed.join(', ')}`;
  const rule =
    found.refused === 'vm_not_stopped'
      ? `Only a stopped virtual machine can be deleted; this one is ${state}`
      : `Cannot ${event} a virtual machine in state ${state}`;
  throw new AppError(found.refused, `${rule} (${possible})`, {
    extra: { state, action: event, allowed },
    ...(found.refused === 'vm_not_stopped' && state !== 'deleting'
      ? { hint: 'Stop the machine first; this also works for a machine that never started' }
      : {}),
  });
}

export type MachineTurns = Turns<VmRow, VmAction>;
export type VmWanted = Wanted<VmRow, VmAction>;

const STATES_UNDER = { start: 'starting', stop: 'stopping', delete: 'deleting' } as const;

/** `vm_locked`: the refusal of an action while another one runs. */
export function locked(running: VmAction, asked: VmAction): AppError {
  const state = STATES_UNDER[running];
  return new AppError('vm_locked', `Another action (${running}) is in progress on this virtual machine`, {
    hint: 'Retry when it has finished',
    retryAfterSeconds: 1,
    extra: { state, action: asked, allowed: allowedActions(state).filter((action) => action === running) },
  });
}

/** The reason of a stop by the system, as opposed to the owner's. */
export function stoppedBecause(cause: StopCause): Reason {
  return stopReason('The virtual machine was stopped', cause);
}

/** Reason of a stop by an administrator; the owner may start the machine again. */
export const STOPPED_BY_ADMINISTRATOR: Reason = {
  code: 'stopped_by_administrator',
  message: 'The virtual machine was stopped by an administrator',
};

/** Machines stopped for these reasons start again once the reason is gone. */
export const PASSING_CAUSES: readonly StopCause[] = [
  'credits_exhausted',
  'spend_cap_reached',
  'account_suspended',
];

/** Refuses every start in a blocked account. */
export function accountBlocked(): AppError {
  const message = 'The account of this virtual machine is suspended or closed';
  return new AppError('account_suspended', message);
}
