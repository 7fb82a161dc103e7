import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stablePlan } from './connection.ts';

test('only placeholders change', () => {
  assert.equal(
    stablePlan(`SELECT '?', "a?", x -- why?\nFROM t /* ? */ WHERE a = ? AND b IN (?, ?1)`),
    `SELECT '?', "a?", x -- why?\nFROM t /* ? */ WHERE a = +? AND b IN (+?, +?1)`,
  );
});

test('a doubled quote does not end a literal', () => {
  assert.equal(stablePlan("SELECT 'it''s ?' || ?"), "SELECT 'it''s ?' || +?");
});
