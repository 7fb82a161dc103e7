/** References (DBRef) in filters: their fields begin with `$` and are no operators. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileFilter } from './filter.ts';

const OWN = { $ref: 'people', $id: 7, $db: 'shop' };

test('elements that are references are found by their fields, and operators of elements stay', () => {
  const document = { one: OWN, all: [{ $ref: 'people', $id: 8 }, OWN] };
  const found = (filter: object) => compileFilter(filter)(document);
  assert.equal(found({ all: { $elemMatch: { $ref: 'people', $id: 7 } } }), true);
  assert.equal(found({ all: { $elemMatch: { $id: { $gt: 8 }, $ref: 'people' } } }), false);
  assert.equal(found({ all: { $elemMatch: { $db: 'shop' } } }), true);
  assert.equal(found({ all: { $not: { $elemMatch: { $ref: 'goods' } } } }), true);
  assert.equal(found({ 'one.$id': 7, one: OWN }), true);
  assert.throws(() => found({ $ref: 'people' }), /unknown top level operator: \$ref/);
  assert.throws(
    () => found({ all: { $elemMatch: { a: 1, $some: 1 } } }),
    /unknown top level operator: \$some/,
  );
});
