/** Kinds of operators by how they receive their operands. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { spend } from '../command-time.ts';
import type { Collation } from '../values/collations.ts';
import { documentOf, entriesOf, mayHaveOrder } from '../values/field-order.ts';
import { isDocument } from '../values/field-paths.ts';
import { isNil, typeNameOf } from '../values/type-names.ts';
import { type Evaluation, type Expression, mingo } from './mingo-library.ts';
import { assertCount, type Operator } from './operators/operator.ts';

/** Cost of an operator within an expression. */
const OPERATOR_STEPS = 5;

export const evalExpr: Expression = (document, argument, options) => {
  if (!mayHaveOrder(argument)) return mingo().evaluate(document, argument, options);
  if (Array.isArray(argument)) return argument.map((each) => evalExpr(document, each, options));
  const isMade = isDocument(argument) && !Object.keys(argument)[0]?.startsWith('$');
  if (!isMade) return mingo().evaluate(document, argument, options);
  // mingo would create such a document in JavaScript's field order.
  const entries = entriesOf(argument).map(
    ([name, inner]) => [name, evalExpr(document, inner, options)] as const,
  );
  return documentOf(entries.filter(([, value]) => value !== undefined));
};

/** The collation of this evaluation, stored in mingo's own field. */
export function collationOf({ collation }: Evaluation): Collation | null {
  return (collation as Collation | null | undefined) ?? null;
}

export function args(document: unknown, argument: unknown, options: Evaluation): unknown[] {
  const value = evalExpr(document, argument, options);
  const values = Array.isArray(argument) ? (value as unknown[]) : [value];
  spend(OPERATOR_STEPS + values.length);
  return values;
}

/** An expression that is null if one of its arguments is null. */
export function strict(work: (values: unknown[]) => unknown): Expression {
  return (document, argument, options) => {
    const values = args(document, argument, options);
    return values.some(isNil) ? null : work(values);
  };
}

/** Our operator with positional operands. */
export function inARow(name: string, operator: Operator): Expression {
  return (document, argument, options) => {
    const values = args(document, argument, options);
    assertCount(name, operator, values.length);
    return operator.work(values, collationOf(options));
  };
}

type Named = (values: Document, collation: Collation | null) => unknown;

/** Our operator with named operands; a missing one is null. */
export function named(name: string, work: Named): Expression {
  return (document, argument, options) => {
    if (!isDocument(argument)) throw new CommandError('FailedToParse', `${name} needs named arguments`);
    spend(OPERATOR_STEPS);
    const values = Object.entries(argument).map(([each, inner]) => {
      // Operators handle a missing value as null.
      const value = evalExpr(document, inner, options) ?? null;
      return [each, value];
    });
    return work(Object.fromEntries(values), collationOf(options));
  };
}

/** A part of a date, given directly or with a time zone. */
export function datePart(name: string, work: Named): Expression {
  const whole = named(name, work);
  return (document, argument, options) => {
    const isNamed = isDocument(argument) && 'date' in argument;
    if (isNamed) return whole(document, argument, options);
    const values = args(document, argument, options);
    assertCount(name, { from: 1, to: 1, work }, values.length);
    return work({ date: values[0] }, collationOf(options));
  };
}

export function made<T>(
  entries: Readonly<Record<string, T>>,
  make: (name: string, each: T) => Expression,
): Record<string, Expression> {
  return Object.fromEntries(Object.entries(entries).map(([name, each]) => [name, make(name, each)]));
}

/** Requires `input` to be a list: null passes, other values are errors with that code. */
export function ofList(name: string, code: number): Expression {
  const operator = (...all: Parameters<Expression>) => mingo().expressions[name]?.(...all);
  return (document, argument, options) => {
    const asked = isDocument(argument) ? argument : {};
    const input = evalExpr(document, asked.input, options);
    if (isNil(input)) return null;
    if (!Array.isArray(input))
      throw new CommandError(code, `input to ${name} must be an array not ${typeNameOf(input)}`);
    return operator(document, { ...asked, input: { $literal: input } }, options);
  };
}
