import assert from 'node:assert/strict';
import { test } from 'node:test';
import { limitsOf } from './guest-limits.ts';

test('a guest may take its memory and what QEMU needs, its processors, and so many threads', () => {
  assert.deepEqual(limitsOf({ vcpus: 2, memoryMb: 1024 }), {
    'memory.max': String((1024 + 512 + 16) * 2 ** 20),
    'memory.oom.group': '1',
    'cpu.max': '225000 100000',
    'pids.max': '130',
  });
});
