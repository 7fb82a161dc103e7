/** Which state follows which: the only place that decides it. */

import { AppError } from '../../platform/errors.ts';
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

/** What the owner may ask for. */
const VM_ACTIONS = ['start', 'stop', 'delete'] as const;
export type VmAction = (typeof VM_ACTIONS)[number];

export const VM_EVENTS = [
  ...VM_ACTIONS,
  /** The guest's processor runs. */
  'started',
  /** It could not be started for want of something that may come: back to where it was. */
  'not_started_new',
  'not_started',
  /** The engine could not do what was asked; nobody knows why. */
  'failed',
  /** The stop that was asked for is done. */
  'halted',
  /** The guest ended by itself. */
  'powered_off',
  'crashed',
  /** The host went down under it, and it is wished to run. */
  'host_restarted',
] as const;
export type VmEvent = (typeof VM_EVENTS)[number];

type Refusal = 'vm_invalid_state' | 'vm_not_stopped';
export type Transition = { readonly to: VmState } | { readonly refused: Refusal };

/** Actions that lead to the state they are in are goals that are reached. What is not here is refused. */
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
  // Its guest may still run, so a stop goes through the engine.
  error: { start: 'starting', stop: 'stopping', powered_off: 'stopped', crashed: 'error' },
  deleting: { delete: 'deleting' },
};

export function transition(state: VmState, event: VmEvent): Transition {
  const to = TABLE[state][event];
  if (to !== undefined) return { to };
  return { refused: event === 'delete' ? 'vm_not_stopped' : 'vm_invalid_state' };
}

/** What the owner may ask for in this state. */
export function allowedActions(state: VmState): readonly VmAction[] {
  return VM_ACTIONS.filter((action) => 'to' in transition(state, action));
}

/** The state after `event`. Throws `vm_invalid_state` or `vm_not_stopped`, naming what is allowed. */
export function nextState(state: VmState, event: VmEvent): VmState {
  const found = transition(state, event);
  if ('to' in found) return found.to;
  const allowed = allowedActions(state);
  const possible = allowed.length === 0 ? 'nothing else is possible now' : `possible: ${allowed.join(', ')}`;
  const rule =
    found.refused === 'vm_not_stopped'
      ? `Only a stopped machine can be deleted; this one is ${state}`
      : `A machine that is ${state} cannot ${event}`;
  throw new AppError(found.refused, `${rule} (${possible})`, {
    extra: { state, action: event, allowed },
    ...(found.refused === 'vm_not_stopped' && state !== 'deleting'
      ? { hint: 'Stop it first; a machine that was never started can be stopped as well' }
      : {}),
  });
}

export type MachineTurns = Turns<VmAction, VmRow>;
export type VmWanted = Wanted<VmAction, VmRow>;

const STATES_UNDER = { start: 'starting', stop: 'stopping', delete: 'deleting' } as const;

/** `vm_locked`: the refusal of an action while another one runs. */
export function locked(running: VmAction, asked: VmAction): AppError {
  const state = STATES_UNDER[running];
  return new AppError('vm_locked', `Another action (${running}) is running on this machine`, {
    hint: 'Try again when it is done',
    retryAfterSeconds: 1,
    extra: { state, action: asked, allowed: allowedActions(state).filter((action) => action === running) },
  });
}
