/** Compares values with those that a MongoDB specification test expects, both as EJSON. */
import assert from 'node:assert/strict';
import { EJSON } from 'bson';

type Operator = (operand: unknown, actual: unknown, path: readonly string[]) => void;
type Fields = Readonly<Record<string, unknown>>;

/** The `$$type` of a JSON value: all types in use can be distinguished without BSON. */
const TYPES: Readonly<Record<string, (value: unknown) => boolean>> = {
  array: Array.isArray,
  bool: (value) => typeof value === 'boolean',
  double: (value) => typeof value === 'number',
  int: Number.isInteger,
  long: Number.isInteger,
  null: (value) => value === null,
  object: isFields,
  string: (value) => typeof value === 'string',
};

const OPERATORS: Readonly<Record<string, Operator>> = {
  $$exists: (operand, actual, path) => {
    assert.equal(actual !== undefined, operand, `${path.join('.')} is there or is not`);
  },
  $$type: (operand, actual, path) => {
    const isOne = [operand].flat().some((name) => {
      const isType = TYPES[String(name)];
      assert.ok(isType, `the runner does not know the type ${name}`);
      return isType(actual);
    });
    assert.ok(isOne, `${path.join('.')} is ${JSON.stringify(actual)} and no ${operand}`);
  },
  $$unsetOrMatches: (operand, actual, path) => {
    if (actual !== undefined) compare(operand, actual, path);
  },
};

/**
 * Throws an AssertionError that names the differing field. `expected` is JSON of a test file; `actual` is any
 * value of the driver. A document at the top, or in an array at the top, may have additional fields.
 */
export function assertMatches(expected: unknown, actual: unknown, name: string): void {
  compare(plain(expected, true), plain(actual, false), [name]);
}

/** Like assertMatches without operators: the same documents, with their fields in the same order. */
export function assertSame(expected: readonly unknown[], actual: readonly unknown[], name: string): void {
  const [want, have] = [plain(expected, true), plain(actual, false)];
  assert.deepEqual(have, want, `${name} holds the documents that are expected`);
  assert.equal(JSON.stringify(have), JSON.stringify(want), `${name} keeps the order of fields`);
}

/** A test's JSON may write a number as relaxed or as canonical EJSON. */
function plain(value: unknown, isJson: boolean): unknown {
  if (value === undefined) return undefined;
  const read = isJson ? EJSON.parse(JSON.stringify(value)) : value;
  return EJSON.serialize({ read }, { relaxed: true }).read;
}

function compare(expected: unknown, actual: unknown, path: readonly string[]): void {
  const [name = '', operand] = isFields(expected) ? (Object.entries(expected)[0] ?? []) : [];
  if (name.startsWith('$$')) {
    const operator = OPERATORS[name];
    assert.ok(operator, `the runner does not know ${name}`);
    operator(operand, actual, path);
  } else if (Array.isArray(expected)) {
    assert.ok(Array.isArray(actual), `${path.join('.')} is ${JSON.stringify(actual)} and no array`);
    assert.equal(actual.length, expected.length, `length of ${path.join('.')}: ${JSON.stringify(actual)}`);
    for (const [at, each] of expected.entries()) compare(each, actual[at], [...path, String(at)]);
  } else if (isFields(expected)) {
    assert.ok(isFields(actual), `${path.join('.')} is ${JSON.stringify(actual)} and no document`);
    compareFields(expected, actual, path);
  } else {
    assert.deepEqual(actual, expected, `${path.join('.')} is ${JSON.stringify(actual)}`);
  }
}

function compareFields(expected: Fields, actual: Fields, path: readonly string[]): void {
  for (const [name, value] of Object.entries(expected)) compare(value, actual[name], [...path, name]);
  const [, at, ...deeper] = path;
  const isAtTop = at === undefined || (deeper.length === 0 && /^\d+$/.test(at));
  if (isAtTop) return;
  const more = Object.keys(actual).filter((name) => !(name in expected));
  assert.deepEqual(more, [], `${path.join('.')} has no other fields: ${JSON.stringify(actual)}`);
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
