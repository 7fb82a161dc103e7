/** Runs examples of the manual's pages on operators. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { Decimal128, Double, Int32, Long, ObjectId } from 'bson';
import { TestDocuments } from './document-database.ts';

/** An expression, and its result for a document; a number after `fails` is the error code. */
export type Case = readonly [expression: unknown, expected: unknown];

class Fails {
  /** Null: any. */
  readonly code: number | null;
  constructor(code: number | null) {
    this.code = code;
  }
}
export const fails = (code: number | null = null): Fails => new Fails(code);

/** There is no value. */
export const MISSING = Symbol('missing');
/** Floating point: within a billionth. */
class About {
  readonly number: number;
  constructor(number: number) {
    this.number = number;
  }
}
export const about = (number: number): About => new About(number);

export const date = (text: string): Date => new Date(text);
export const long = (text: string | number): Long => Long.fromString(String(text));
export const decimal = (text: string): Decimal128 => Decimal128.fromString(text);

/** A value with the type of its numbers: `int 1`, `double 1`. */
function typed(value: unknown): unknown {
  if (value instanceof Int32) return `int ${value.value}`;
  if (value instanceof Double) return `double ${value.value}`;
  if (value instanceof Long) return `long ${value}`;
  if (value instanceof Decimal128) return `decimal ${value}`;
  if (value instanceof ObjectId) return `id ${value.toHexString()}`;
  if (Array.isArray(value)) return value.map(typed);
  if (value?.constructor !== Object) return value;
  return Object.fromEntries(Object.entries(value as object).map(([name, each]) => [name, typed(each)]));
}

/** Numbers as a driver sends them: whole ones of 32 bits as int, others as double. */
function sent(value: unknown): unknown {
  if (typeof value === 'number')
    return Number.isInteger(value) && Math.abs(value) < 2 ** 31 ? `int ${value}` : `double ${value}`;
  if (Array.isArray(value)) return value.map(sent);
  if (value?.constructor !== Object) return typed(value);
  return Object.fromEntries(Object.entries(value as object).map(([name, each]) => [name, sent(each)]));
}

export class Examples {
  readonly #documents: TestDocuments;

  constructor(t: Pick<TestContext, 'after'>) {
    this.#documents = new TestDocuments(t);
    this.#documents.insert('one', { _id: 1, none: null, text: 'abc' });
  }

  check([expression, expected]: Case): void {
    const pipeline = [{ $project: { _id: 0, x: expression } }];
    const reply = this.#documents.ask({ aggregate: 'one', pipeline, cursor: {} }, { exact: true });
    const why = JSON.stringify(expression);
    if (expected instanceof Fails) {
      assert.equal(reply.ok?.value ?? reply.ok, 0, why);
      if (expected.code !== null) assert.equal(Number(reply.code), expected.code, `${why}: ${reply.errmsg}`);
      return;
    }
    assert.equal(Number(reply.ok), 1, `${why}: ${reply.errmsg}`);
    const [found] = reply.cursor.firstBatch;
    if (expected === MISSING) assert.deepEqual(found, {}, why);
    else if (expected instanceof About) {
      assert.ok(Math.abs(Number(found.x) - expected.number) < 1e-9, `${why} is ${found.x}`);
    } else assert.deepEqual(typed(found.x), sent(expected), why);
  }
}
