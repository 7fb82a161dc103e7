import assert from 'node:assert/strict';
import { validateHeaderValue } from 'node:http';
import { test } from 'node:test';
import fc from 'fast-check';
import { cases } from '../../testing/cases.ts';
import { contentDisposition } from '../response.ts';

const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** Every character, the dangerous ones more often. */
const unit = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 3 }),
  fc.constantFrom('"', '\\', ';', '\r', '\n', '\0', "'", '%', '=', ' ', 'é', '日', '😀', 'filename='),
);
const anyName = fc.array(unit, { maxLength: 12 }).map((parts) => parts.join(''));

/** As a client reads it: RFC 6266 parameters, the extended one first. */
function nameRead(header: string): string {
  const extended = /filename\*=UTF-8''([^; ]*)/.exec(header.slice(0, plainAt(header)));
  if (extended) return decodeURIComponent(extended[1] as string);
  return plainRead(header);
}

function plainAt(header: string): number {
  const found = /(?<=; )filename=(?=[^;]*$|")/.exec(header);
  assert.ok(found, header);
  return found.index;
}

function plainRead(header: string): string {
  const value = header.slice(plainAt(header) + 'filename='.length);
  return value.startsWith('"') ? value.slice(1, -1) : value;
}

test('no name breaks the header, and a client reads the name back', () => {
  fc.assert(
    fc.property(anyName, fc.constantFrom('attachment', 'inline'), (name, kind) => {
      const header = contentDisposition(kind, name);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
      assert.doesNotMatch(header, /[\u0000-\u001f\u007f-\uffff]/);
      validateHeaderValue('content-disposition', header);
      assert.ok(header.startsWith(`${kind}; `));
      const shown = name.slice(name.lastIndexOf('/') + 1) || 'download';
      assert.equal(nameRead(header), shown);
    }),
    { numRuns: cases(1000) },
  );
});

test('filename= is last, a token bare and anything else in quotes that nothing can end', () => {
  fc.assert(
    fc.property(anyName, (name) => {
      const header = contentDisposition('attachment', name);
      const value = header.slice(plainAt(header) + 'filename='.length);
      assert.ok(TOKEN.test(value) || /^"[^"\\]*"$/.test(value), header);
    }),
    { numRuns: cases(1000) },
  );
});

test('what people see', () => {
  const cases: readonly [string, string][] = [
    ['report.pdf', 'attachment; filename=report.pdf'],
    ['2026/q1/report.pdf', 'attachment; filename=report.pdf'],
    ['my report.pdf', 'attachment; filename="my report.pdf"'],
    ['größe.txt', "attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe.txt; filename=gr__e.txt"],
    ['a"b.txt', "attachment; filename*=UTF-8''a%22b.txt; filename=a_b.txt"],
    ['a;b.txt', 'attachment; filename="a;b.txt"'],
    ['100%.txt', 'attachment; filename=100%.txt'],
    ["it's*.txt", "attachment; filename=it's*.txt"],
    ['folder/', 'attachment; filename=download'],
    ['..', 'attachment; filename=..'],
  ];
  for (const [name, header] of cases) assert.equal(contentDisposition('attachment', name), header);
});
