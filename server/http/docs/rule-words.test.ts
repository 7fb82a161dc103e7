import assert from 'node:assert/strict';
import { test } from 'node:test';
import { declaredRoutes } from '../../cloud/edges.ts';
import type { AppError } from '../../platform/errors.ts';
import { type TSchema, Type } from '../../platform/json/json-schema.ts';
import { bodyCheck } from '../validate.ts';

/** The description of a member of this schema with this value. */
function said(schema: TSchema, value: unknown): string | undefined {
  try {
    bodyCheck(Type.Object({ it: schema }))({ it: value });
  } catch (error) {
    return (error as AppError).fields?.map(({ message }) => message).join('; ');
  }
  return undefined;
}

const region = Type.String({ pattern: '^[a-z]+$', 'x-rule': 'must have letters only' });
const kind = Type.Union([Type.Literal('a'), Type.Literal('b')]);
const limit = Type.Union([Type.Integer({ minimum: 0, maximum: 9 }), Type.Null()]);

const WORDS: [TSchema, unknown, string][] = [
  [region, 'R2', 'must have letters only'],
  [Type.Array(region), ['a', '7'], 'must have letters only'],
  [region, 7, 'must be a string'],
  [Type.Integer(), '5', 'must be a whole number'],
  [Type.Number(), true, 'must be a number'],
  [Type.Boolean(), 'true', 'must be true or false'],
  [Type.Array(region), 'a', 'must be a list, in [ ]'],
  [Type.Object({}), [], 'must be an object, in { }'],
  [kind, 'c', 'must be a or b'],
  [kind, 1, 'must be a or b'],
  [Type.String({ enum: ['x', 'y'] }), 'z', 'must be x or y'],
  [Type.String({ enum: ['w', 'x', 'y', 'z'] }), 'v', 'must be one of w, x, y, z'],
  [kind, 'B', 'must be a or b; did you mean b?'],
  [
    Type.Object({ list: Type.Array(Type.Enum(['*', 'disk:read', 'disk:write'])) }),
    { list: ['*', 'disk:raed'] },
    'must be * or disk:read or disk:write; did you mean disk:read?',
  ],
  [Type.String({ enum: ['red', 'blue'] }), 'r'.repeat(1000), 'must be red or blue'],
  [Type.Literal('STANDARD'), 'GLACIER', 'must be STANDARD'],
  [limit, 'many', 'must be a whole number or null'],
  [limit, 10, 'must be from 0 to 9'],
  [Type.Integer({ minimum: 1 }), 0, 'must be 1 or more'],
  [Type.Integer({ maximum: 1 }), 2, 'must be 1 or less'],
  [Type.Integer({ multipleOf: 5 }), 7, 'must be a multiple of 5'],
  [Type.String({ minLength: 8, maxLength: 256 }), 'short', 'must have 8 to 256 characters'],
  [Type.String({ minLength: 1 }), '', 'must have at least 1 character'],
  [Type.String({ maxLength: 3 }), 'long', 'must have at most 3 characters'],
  [Type.Array(region, { minItems: 1 }), [], 'must have at least 1 item'],
];

test('rules are described in words', () => {
  for (const [schema, value, words] of WORDS) assert.equal(said(schema, value), words);
});

test('every pattern that a caller may break has its rule in words', () => {
  const without: string[] = [];
  let patterns = 0;
  const walk = (node: unknown, where: string) => {
    if (typeof node !== 'object' || node === null) return;
    const { pattern, 'x-rule': rule } = node as Record<string, unknown>;
    if (typeof pattern === 'string') {
      patterns++;
      if (typeof rule !== 'string' || !rule.startsWith('must ')) without.push(where);
    }
    for (const [name, each] of Object.entries(node)) walk(each, `${where}.${name}`);
  };
  for (const { name, params, query, body } of declaredRoutes()) walk({ params, query, body }, name);
  assert.ok(patterns > 5, String(patterns));
  assert.deepEqual(without, []);
});
