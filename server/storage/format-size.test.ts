import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatSize } from './listing/entries.ts';

const KIB = 1024;

test('each unit begins where the one before would show 1024.00', () => {
  const cases: readonly [number, string][] = [
    [0, '0.00 B'],
    [512, '512.00 B'],
    [KIB - 1, '1023.00 B'],
    [KIB, '1.00 KB'],
    [1536, '1.50 KB'],
    [KIB ** 2 - 6, '1023.99 KB'],
    [KIB ** 2 - 5, '1.00 MB'],
    [KIB ** 2 - 1, '1.00 MB'],
    [2 * KIB ** 2, '2.00 MB'],
    [KIB ** 3 - 1, '1.00 GB'],
    [KIB ** 4, '1.00 TB'],
    [KIB ** 5, '1.00 PB'],
    [Number.MAX_SAFE_INTEGER, '8.00 PB'],
  ];
  for (const [bytes, text] of cases) assert.equal(formatSize(bytes), text, String(bytes));
});

test('always two decimals, never 1024 of a unit, and right to half a hundredth', () => {
  const units = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];
  fc.assert(
    fc.property(fc.maxSafeNat(), (bytes) => {
      const [, figure, unit] = /^(\d{1,4}\.\d\d) ([KMGTP]?B)$/.exec(formatSize(bytes)) ?? [];
      assert.ok(figure !== undefined && unit !== undefined, formatSize(bytes));
      assert.ok(Number(figure) < KIB);
      const exact = bytes / KIB ** units.indexOf(unit);
      assert.ok(Math.abs(Number(figure) - exact) <= 0.005 + 1e-9, `${bytes}`);
    }),
  );
});
