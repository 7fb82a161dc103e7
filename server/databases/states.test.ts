import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assertFollows, DATABASE_STATES } from './states.ts';

test('which state may follow which', () => {
  const expected: Readonly<Record<string, readonly string[]>> = {
    creating: ['ready', 'deleting'],
    ready: ['read_only', 'suspended', 'error', 'deleting'],
    read_only: ['ready', 'suspended', 'error', 'deleting'],
    suspended: ['ready', 'read_only', 'error', 'deleting'],
    error: ['ready', 'read_only', 'suspended', 'deleting'],
    deleting: ['ready', 'read_only', 'suspended'],
  };
  const follows = (before: (typeof DATABASE_STATES)[number]) =>
    DATABASE_STATES.filter((after) => {
      if (after === before) return false;
      try {
        assertFollows(before, after);
        return true;
      } catch {
        return false;
      }
    });
  for (const state of DATABASE_STATES) {
    assert.deepEqual(follows(state), expected[state], state);
    assert.doesNotThrow(() => assertFollows(state, state));
  }
});
