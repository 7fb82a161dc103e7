import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostLoad, patienceMs } from './host-load.ts';

test('the load of a host is per processor, and never below 1', () => {
  assert.equal(hostLoad(50, 2), 25);
  assert.equal(hostLoad(0.4, 2), 1);
  assert.equal(hostLoad(0, 2), 1);
  assert.ok(hostLoad() >= 1);
});

test('patience is never less than on a quiet host', () => assert.ok(patienceMs(1000) >= 1000));
