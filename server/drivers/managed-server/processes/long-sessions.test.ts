import assert from 'node:assert/strict';
import { test } from 'node:test';
import { wantsProcessor } from './long-sessions.ts';

test('a session computes for long by what it used, or by what it wanted where all compute', () => {
  const since = (usedMs: number, waitedMs: number) => wantsProcessor({ passedMs: 500, usedMs, waitedMs });
  assert.ok(since(60, 0), 'a session that reads from a disk meanwhile');
  assert.ok(since(17, 480), 'one of thirty on one processor');
  assert.ok(!since(17, 200), 'short statements, between which it waits for its client');
  assert.ok(!since(17, 0), 'the same, where the kernel counts no waiting');
});
