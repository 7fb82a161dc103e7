import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredRoutes } from '../../cloud/edges.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { bodyCheck } from '../validate.ts';
import { exampleOf, fieldsOf, type Schema, typeOf } from './schema-fields.ts';

test('members of members and of lists are named after what they are in', () => {
  const schema = Type.Array(
    Type.Object({
      id: Type.String({ description: 'One' }),
      reason: Type.Union([Type.Object({ code: Type.String() }), Type.Null()]),
      parts: Type.Optional(Type.Array(Type.Object({ etag: Type.String() }))),
    }),
  );
  const fields = fieldsOf(schema as Schema);
  assert.deepEqual(
    fields.map(({ name, type, isRequired }) => [name, type, isRequired]),
    [
      ['id', 'string', true],
      ['reason', 'object or null', true],
      ['reason.code', 'string', true],
      ['parts', 'list of object', false],
      ['parts[].etag', 'string', true],
    ],
  );
});

test('types are described in words', () => {
  assert.equal(typeOf(Type.Integer({ minimum: 1, maximum: 9 }) as Schema), 'integer 1–9');
  assert.equal(typeOf(Type.Union([Type.String(), Type.Null()]) as Schema), 'string or null');
  assert.equal(typeOf(Type.Enum(['a', 'b']) as Schema), 'a | b');
  assert.equal(typeOf(Type.Literal(true) as Schema), 'true');
});

test('the example of every answer fits its schema', () => {
  let seen = 0;
  for (const { name, responses, produces = 'json' } of declaredRoutes()) {
    const [schema] = Object.values(responses);
    if (!schema || !['json', 'list'].includes(produces)) continue;
    const wrapped = bodyCheck(Type.Object({ answer: schema }));
    assert.doesNotThrow(() => wrapped({ answer: exampleOf(schema as Schema) }), name);
    seen++;
  }
  assert.ok(seen > 60);
});
