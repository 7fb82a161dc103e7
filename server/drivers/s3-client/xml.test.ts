import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { escapeXml, readXml, textOf } from './xml.ts';

test('elements, text, entities and namespaces are read', () => {
  const root = readXml(
    `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">` +
      `<Name>a</Name><x:Contents><Key> a&amp;b&#13;&#x20AC; </Key><Size>3</Size></x:Contents><Contents/></ListBucketResult>\n`,
  );
  assert.equal(root.name, 'ListBucketResult');
  assert.deepEqual(
    root.children.map(({ name }) => name),
    ['Name', 'Contents', 'Contents'],
  );
  assert.equal(textOf(root.children[1] ?? root, 'Key'), ' a&b\r€ ');
  assert.equal(textOf(root, 'Missing'), '');
});

test('anything else is refused', () => {
  for (const text of [
    '',
    'x',
    '<a>',
    '<a></b>',
    '<a><b></a></b>',
    '<a></a><b></b>',
    '<a></a>x',
    '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>',
    '<a>&b;</a>',
    '<a>&amp</a>',
    '<a><!-- x --></a>',
    '<a b=c></a>',
    `${'<a>'.repeat(17)}${'</a>'.repeat(17)}`,
  ]) {
    assert.throws(() => readXml(text), text);
  }
});

test('any text comes back, and no text hangs or breaks the reader', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      assert.equal(textOf(readXml(`<a><b>${escapeXml(text)}</b></a>`), 'b'), text);
    }),
  );
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('<', '>', '/', 'a', '&', ';', '"', '=', ' ', '<a>', '</a>')),
      (parts) => {
        try {
          readXml(parts.join(''));
        } catch (error) {
          assert.match((error as Error).message, /^XML /);
        }
      },
    ),
    { numRuns: 2000 },
  );
});
