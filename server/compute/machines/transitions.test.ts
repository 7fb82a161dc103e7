import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isAppError } from '../../platform/errors.ts';
import {
  allowedActions,
  nextState,
  transition,
  VM_EVENTS,
  VM_STATES,
  type VmEvent,
  type VmState,
} from './transitions.ts';

const INVALID = 'vm_invalid_state';
const NOT_STOPPED = 'vm_not_stopped';

/** Every pair, listed by hand: rows are events, columns are VM_STATES in their order. */
const EXPECTED: Readonly<Record<VmEvent, readonly string[]>> = {
  //                created        starting     running      stopping   stopped     error        deleting
  start: ['starting', 'starting', 'running', INVALID, 'starting', 'starting', INVALID],
  stop: ['stopped', 'stopping', 'stopping', 'stopping', 'stopped', 'stopping', INVALID],
  delete: [NOT_STOPPED, NOT_STOPPED, NOT_STOPPED, NOT_STOPPED, 'deleting', NOT_STOPPED, 'deleting'],
  started: [INVALID, 'running', 'running', INVALID, INVALID, INVALID, INVALID],
  not_started_new: [INVALID, 'created', INVALID, INVALID, INVALID, INVALID, INVALID],
  not_started: [INVALID, 'stopped', INVALID, INVALID, INVALID, INVALID, INVALID],
  failed: [INVALID, 'error', INVALID, 'error', INVALID, INVALID, INVALID],
  halted: [INVALID, INVALID, INVALID, 'stopped', INVALID, INVALID, INVALID],
  powered_off: [INVALID, INVALID, 'stopped', 'stopped', INVALID, 'stopped', INVALID],
  crashed: [INVALID, INVALID, 'error', 'stopped', INVALID, 'error', INVALID],
  host_restarted: [INVALID, INVALID, 'starting', INVALID, INVALID, INVALID, INVALID],
};

for (const event of VM_EVENTS) {
  test(`${event} from every state`, () => {
    const found = VM_STATES.map((state) => {
      const next = transition(state, event);
      return 'to' in next ? next.to : next.refused;
    });
    assert.deepEqual(found, EXPECTED[event]);
  });
}

test('a refusal names the state, the action and what is allowed', () => {
  const refused = (state: VmState, event: VmEvent) => {
    try {
      nextState(state, event);
    } catch (error) {
      if (isAppError(error)) return { code: error.code, extra: error.extra, detail: error.message };
    }
    return assert.fail('not refused');
  };
  assert.deepEqual(refused('stopping', 'start'), {
    code: INVALID,
    extra: { state: 'stopping', action: 'start', allowed: ['stop'] },
    detail: 'Cannot start a virtual machine in state stopping (allowed: stop)',
  });
  assert.deepEqual(refused('running', 'delete'), {
    code: NOT_STOPPED,
    extra: { state: 'running', action: 'delete', allowed: ['start', 'stop'] },
    detail: 'Only a stopped virtual machine can be deleted; this one is running (allowed: start, stop)',
  });
});

test('from every state but that of a deletion some actions lead to a deletion', () => {
  for (const state of VM_STATES) {
    const stopped = state === 'stopped' || allowedActions(state).includes('stop');
    assert.ok(stopped || state === 'deleting', state);
  }
});
