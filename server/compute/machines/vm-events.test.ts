import assert from 'node:assert/strict';
import { test } from 'node:test';
import { eventFor } from './lifecycle.ts';
import { VM_STATES, type VmState } from './transitions.ts';
import type { VmRow } from './vm-store.ts';

function row(state: VmState, startedAt: number | null): VmRow {
  return {
    id: 1,
    vm_id: 'vm-1',
    account_id: 7,
    name: 'web',
    instance_type: 't2.micro',
    region: 'us-east-1',
    tags: '',
    vcpus: 1,
    memory_mb: 1024,
    disk_gb: 30,
    price_micro: 11_600,
    image_id: 'tiny',
    ssh_keys: '[]',
    user_data: null,
    ports: '[22]',
    outbound: 0,
    uuid: '',
    mac: '',
    address: state === 'deleting' ? null : '127.80.0.1',
    state,
    desired_state: 'running',
    generation: 1,
    reason_code: null,
    reason_message: null,
    handle: null,
    accel: null,
    accel_reason: null,
    state_changed_at: 0,
    started_at: startedAt,
    ready_at: null,
    created_at: 0,
  } as VmRow;
}

const RUNS: readonly VmState[] = ['running', 'stopping', 'error'];
const startOf = (state: VmState) => (RUNS.includes(state) ? 1 : null);

test('what is announced at each step', () => {
  const announced: Record<string, string> = {};
  for (const before of VM_STATES) {
    for (const after of VM_STATES) {
      const said = eventFor(row(before, startOf(before)), row(after, startOf(after)), 5);
      if (said !== undefined) announced[`${before} → ${after}`] = said.type;
    }
  }
  const possible = {
    'starting → running': 'vm.started',
    'starting → created': 'vm.failed',
    'starting → stopped': 'vm.failed',
    'starting → error': 'vm.failed',
    'running → stopped': 'vm.stopped',
    'running → starting': 'vm.stopped',
    'running → error': 'vm.failed',
    'stopping → stopped': 'vm.stopped',
    'stopping → error': 'vm.failed',
    'error → stopped': 'vm.stopped',
    'stopped → deleting': 'vm.deleted',
  };
  for (const [step, type] of Object.entries(possible)) assert.equal(announced[step], type, step);
  const silent = ['created → starting', 'created → stopped', 'stopped → starting', 'running → stopping'];
  for (const step of [
    ...silent,
    'starting → stopping',
    'error → starting',
    'error → stopping',
    'error → error',
  ]) {
    assert.equal(announced[step], undefined, step);
  }
});

test('a run that follows a run is announced; what is announced names the machine as it was', () => {
  assert.equal(eventFor(row('running', 1), row('running', 2), 5)?.type, 'vm.started');
  assert.equal(eventFor(row('running', 1), row('running', 1), 5), undefined);
  const gone = eventFor(row('stopped', null), row('deleting', null), 5);
  assert.deepEqual(gone, {
    accountId: 7,
    type: 'vm.deleted',
    at: 5,
    data: {
      vm_id: 'vm-1',
      name: 'web',
      instance_type: 't2.micro',
      region: 'us-east-1',
      state: 'deleted',
      ip_address: '127.80.0.1',
      reason: null,
    },
  });
});
