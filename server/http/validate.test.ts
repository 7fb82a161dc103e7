import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AppError, isAppError } from '../platform/errors.ts';
import { Type } from '../platform/json/json-schema.ts';
import { bodyCheck, textCheck } from './validate.ts';

const body = bodyCheck(
  Type.Object({
    name: Type.String({ minLength: 2 }),
    count: Type.Optional(Type.Integer({ minimum: 1 })),
    on: Type.Optional(Type.Boolean()),
    owner: Type.Optional(Type.Object({ id: Type.Integer() })),
  }),
);

/** The fields that `check` rejects. */
function fieldsOf(check: () => unknown): string[] {
  try {
    check();
  } catch (error) {
    assert.ok(isAppError(error, 'invalid_request'), String(error));
    const { fields = [], message } = error as AppError;
    assert.ok(message.startsWith(`${fields[0]?.field}: `), message);
    for (const { message: said } of fields) assert.ok(said.length > 0);
    return fields.map(({ field }) => field).sort();
  }
  return [];
}

test('a good body passes, with members the schema does not name', () => {
  const given = { name: 'ab', count: 1, on: false, extra: [1] };
  assert.equal(body(given), given);
});

test('JSON types are strict: nothing is read from text', () => {
  assert.deepEqual(
    fieldsOf(() => body({ name: 'ab', count: '5' })),
    ['count'],
  );
  assert.deepEqual(
    fieldsOf(() => body({ name: 'ab', on: 'true' })),
    ['on'],
  );
  assert.deepEqual(
    fieldsOf(() => body({ name: 'ab', on: 1 })),
    ['on'],
  );
  assert.deepEqual(
    fieldsOf(() => body({ name: 12 })),
    ['name'],
  );
  assert.deepEqual(
    fieldsOf(() => body({ name: null })),
    ['name'],
  );
  assert.deepEqual(
    fieldsOf(() => body({ name: 'ab', count: 1.5 })),
    ['count'],
  );
});

test('all problems are reported at once, each field once', () => {
  assert.deepEqual(
    fieldsOf(() => body({ count: 0, on: 'x', owner: { id: 'a' } })),
    ['count', 'name', 'on', 'owner.id'],
  );
  assert.deepEqual(
    fieldsOf(() => body({ name: 'ab', owner: {} })),
    ['owner.id'],
  );
});

test('of many problems none is left out, and what is far too long is not looked into', () => {
  const names = 'abcdefghijkl'.split('');
  const many = Type.Object({
    ...Object.fromEntries(names.map((name) => [name, Type.Integer()])),
    list: Type.Array(Type.Integer(), { maxItems: 20 }),
  });
  let asked: object = {};
  const check = bodyCheck(many, (members) => {
    asked = members;
  });
  const given = { ...Object.fromEntries(names.map((name) => [name, 'x'])), list: Array(400_000).fill('') };
  assert.deepEqual(
    fieldsOf(() => check(given)),
    [...names, 'list'],
  );
  assert.deepEqual(asked, {});
  assert.deepEqual(
    fieldsOf(() => check({ ...given, a: 1, list: [1, 'x'] })),
    [...names.slice(1), 'list.1'],
  );
  assert.deepEqual(asked, { a: 1 });
});

test('a body that is not an object is refused; none at all counts as an empty one', () => {
  for (const given of [null, [], 'text', 7, true]) assert.notEqual(fieldsOf(() => body(given)).length, 0);
  assert.deepEqual(
    fieldsOf(() => body(undefined)),
    ['name'],
  );
  const optional = bodyCheck(Type.Object({ a: Type.Optional(Type.String()) }));
  assert.deepEqual(optional(undefined), {});
  assert.equal(bodyCheck(undefined)('anything'), 'anything');
});

const query = textCheck(
  Type.Object({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000 })),
    force: Type.Optional(Type.Boolean()),
    prefix: Type.Optional(Type.String()),
  }),
);

test('query parameters are read from text, and only those the schema names are kept', () => {
  assert.deepEqual(query({ limit: '10', force: 'true', prefix: '5', other: 'x' }), {
    limit: 10,
    force: true,
    prefix: '5',
  });
  assert.deepEqual(query({ force: 'false' }), { force: false });
});

test('text that is no integer or boolean, or is given twice, is refused', () => {
  const bad = [
    '0',
    '1001',
    '-1',
    '1.0',
    '1e2',
    '0x10',
    ' 5',
    '5 ',
    '',
    'x',
    '99999999999999999999',
    ['1', '2'],
  ];
  for (const limit of bad)
    assert.deepEqual(
      fieldsOf(() => query({ limit })),
      ['limit'],
      String(limit),
    );
  for (const force of ['1', 'yes', 'TRUE', '', 'true ']) {
    assert.deepEqual(
      fieldsOf(() => query({ force })),
      ['force'],
      force,
    );
  }
  assert.deepEqual(
    fieldsOf(() => query({ prefix: ['a', 'b'] })),
    ['prefix'],
  );
});

test("of a body that does not fit, the domain's rules are asked for what fits, and their code counts", () => {
  const rules = ({ name }: { name?: string }) => {
    if (name !== 'no') return;
    throw new AppError('invalid_bucket_name', 'no', { fields: [{ field: 'name', message: 'no' }] });
  };
  const schema = Type.Object({ name: Type.String(), count: Type.Integer() });
  const check = bodyCheck(schema, rules);
  const refusalOf = (given: unknown) => {
    try {
      check(given);
    } catch (error) {
      const { code, fields = [] } = error as AppError;
      return [code, ...fields.map(({ field }) => field)];
    }
    return 'let through';
  };
  assert.deepEqual(refusalOf({ name: 'no', count: 'x' }), ['invalid_bucket_name', 'name', 'count']);
  assert.deepEqual(refusalOf({ name: 'no' }), ['invalid_bucket_name', 'name', 'count']);
  assert.deepEqual(refusalOf({ name: 'yes', count: 'x' }), ['invalid_request', 'count']);
  assert.deepEqual(refusalOf({ name: 1, count: 1 }), ['invalid_request', 'name']);
  assert.equal(refusalOf({ name: 'no', count: 1 }), 'let through');
  for (const none of [null, 'text', 7, ['no']])
    assert.deepEqual(refusalOf(none), ['invalid_request', 'body']);
});
