import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  coveredPrefixes,
  currentExpiry,
  DAY_MS,
  type Filtered,
  type LifecycleRule,
  markerExpiry,
  noncurrentExpiry,
  REAL_DAYS,
  uploadExpiry,
} from './lifecycle-rules.ts';

const at = (text: string) => Date.parse(text);
const rule = (fields: Partial<LifecycleRule>): LifecycleRule => {
  return { id: 'r', isEnabled: true, form: 'filter', ...fields };
};
const object = (fields: Partial<Filtered> = {}): Filtered => {
  return { name: 'a/b', size_bytes: 10, tags: null, created_at: at('2026-01-01T10:30Z'), ...fields };
};
const goes = (rules: readonly LifecycleRule[], fields: Partial<Filtered> = {}) =>
  currentExpiry({ rules }, object(fields));

test('days count from creation and end at midnight UTC', () => {
  assert.equal(goes([rule({ days: 3 })])?.at, at('2026-01-05T00:00Z'));
  assert.equal(
    goes([rule({ days: 1 })], { created_at: at('2026-01-01T00:00Z') })?.at,
    at('2026-01-02T00:00Z'),
  );
  const short = currentExpiry({ rules: [rule({ days: 3 })] }, object(), { dayMs: 1000 });
  assert.equal(short?.at, at('2026-01-01T10:30:03Z'));
});

test('the earliest of the rules that cover an object counts', () => {
  const rules = [
    rule({ id: 'late', days: 30 }),
    rule({ id: 'date', date: at('2026-01-07T00:00Z') }),
    rule({ id: 'off', days: 1, isEnabled: false }),
    rule({ id: 'other', days: 1, prefix: 'b' }),
    rule({ id: 'older', noncurrentDays: 1 }),
  ];
  assert.deepEqual(goes(rules), { at: at('2026-01-07T00:00Z'), ruleId: 'date' });
  assert.equal(goes(rules.slice(2)), undefined);
});

test('filters by prefix, size and all of the tags', () => {
  const has = (filter: Partial<LifecycleRule>, fields: Partial<Filtered> = {}) =>
    goes([rule({ days: 1, ...filter })], fields) !== undefined;
  assert.ok(has({ prefix: 'a/' }) && !has({ prefix: 'a/c' }));
  assert.ok(has({ largerThan: 9 }) && !has({ largerThan: 10 }));
  assert.ok(has({ smallerThan: 11 }) && !has({ smallerThan: 10 }));
  const tags = JSON.stringify({ a: '1', b: '2' });
  assert.ok(has({ tags: { a: '1' } }, { tags }) && has({ tags: { a: '1', b: '2' } }, { tags }));
  assert.ok(!has({ tags: { a: '2' } }, { tags }) && !has({ tags: { c: '1' } }, { tags }));
  assert.ok(!has({ tags: { a: '1' } }));
});

test('older versions count from the day they were replaced, and the newest of them may stay', () => {
  const rules = [rule({ noncurrentDays: 2, newerNoncurrent: 1 })];
  const old = { ...object(), since: at('2026-02-01T12:00Z') };
  assert.equal(noncurrentExpiry({ rules }, { ...old, newer: 0 }, REAL_DAYS), undefined);
  assert.equal(noncurrentExpiry({ rules }, { ...old, newer: 1 }, REAL_DAYS)?.at, at('2026-02-04T00:00Z'));
});

test('a marker that hides nothing goes at once, or at the age of objects', () => {
  const { name, created_at } = object();
  const marker = { name, created_at };
  assert.equal(markerExpiry({ rules: [rule({ expiresMarkers: true })] }, marker, REAL_DAYS)?.at, created_at);
  const aged = markerExpiry({ rules: [rule({ days: 1 })] }, marker, REAL_DAYS);
  assert.equal(aged?.at, at('2026-01-03T00:00Z'));
  for (const fields of [{ days: 1, tags: { a: '1' } }, { days: 1, largerThan: 0 }, { noncurrentDays: 1 }]) {
    assert.equal(markerExpiry({ rules: [rule(fields)] }, marker, REAL_DAYS), undefined);
  }
});

test('uploads go by prefix and age', () => {
  const rules = [rule({ abortDays: 7, prefix: 'a/' })];
  assert.equal(uploadExpiry({ rules }, object())?.at, at('2026-01-09T00:00Z'));
  assert.equal(uploadExpiry({ rules }, object({ name: 'b' })), undefined);
});

test('prefixes are in the order of names, and none is within another', () => {
  const rules = ['b', 'a/x', 'a/', '\u{1F600}', '\uFFFD', 'b'].map((prefix) => rule({ prefix, days: 1 }));
  assert.deepEqual(coveredPrefixes({ rules }), ['a/', 'b', '\uFFFD', '\u{1F600}']);
  assert.deepEqual(coveredPrefixes({ rules: [rule({ abortDays: 1 })] }), []);
  assert.deepEqual(coveredPrefixes({ rules: [...rules, rule({ days: 1 })] }), ['']);
  assert.equal(DAY_MS, 86_400_000);
});
