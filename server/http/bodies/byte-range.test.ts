import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { cases } from '../../testing/cases.ts';
import { type ByteRange, parseRange } from './send-content.ts';

/** RFC 9110 §14.1.2, byte by byte: which positions a single range selects. */
function model(first: number | undefined, last: number | undefined, size: number) {
  if (first !== undefined && last !== undefined && last < first) return undefined;
  const positions: readonly number[] = Array.from({ length: size }, (_, i) => i);
  const selected = positions.filter((i) =>
    first === undefined ? size - i <= (last ?? 0) : i >= first && i <= (last ?? size),
  );
  return selected.length === 0 ? 'unsatisfiable' : selected;
}

test('any single range selects the bytes the standard says', () => {
  const position = fc.option(fc.nat({ max: 60 }), { nil: undefined });
  fc.assert(
    fc.property(position, position, fc.nat({ max: 50 }), (first, last, size) => {
      fc.pre(first !== undefined || last !== undefined);
      const got = parseRange(`bytes=${first ?? ''}-${last ?? ''}`, size);
      const expected = model(first, last, size);
      if (typeof got === 'object') {
        assert.ok(Array.isArray(expected));
        assert.deepEqual([got.start, got.end - 1], [expected[0], expected.at(-1)]);
      } else assert.equal(got, expected);
    }),
    { numRuns: cases(1000) },
  );
});

test('the whole is sent when the header is missing, malformed, of another unit or of several ranges', () => {
  const ignored = [undefined, '', 'bytes', 'bytes=', 'bytes=-', 'bytes=a-b', 'bytes=1-2,4-5', 'bytes=5-4'];
  for (const header of [...ignored, 'items=0-5', 'bytes=-1-2', 'bytes=1.5-2', 'bytes= 1-2', 'bytes=0x1-2']) {
    assert.equal(parseRange(header, 10), undefined, header ?? 'no header');
  }
});

test('numbers beyond all sizes stay in the object', () => {
  const huge = '9'.repeat(400);
  const cases: readonly [string, ByteRange | 'unsatisfiable'][] = [
    [`bytes=0-${huge}`, { start: 0, end: 10 }],
    [`bytes=-${huge}`, { start: 0, end: 10 }],
    [`bytes=${huge}-`, 'unsatisfiable'],
    [`bytes=${huge}-${huge}`, 'unsatisfiable'],
  ];
  for (const [header, expected] of cases) assert.deepEqual(parseRange(header, 10), expected, header);
});

test('any text at all gives a range inside of the object, or none', () => {
  const text = fc.oneof(fc.string(), fc.stringMatching(/^bytes=[0-9-, ]{0,24}$/));
  fc.assert(
    fc.property(text, fc.nat({ max: 1000 }), (header, size) => {
      const got = parseRange(header, size);
      if (typeof got === 'object') assert.ok(got.start >= 0 && got.start < got.end && got.end <= size);
    }),
  );
});
