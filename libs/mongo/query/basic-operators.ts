/** Operators for conditions, comparisons and arithmetic, with BSON's types. */
import { Long } from 'bson';
import { CommandError } from '../command-error.ts';
import { isDocument } from '../values/field-paths.ts';
import { compareValues, equalValues } from '../values/key-order.ts';
import { metaValue } from '../values/metadata.ts';
import { roundNumber } from '../values/number-rounding.ts';
import {
  asInteger,
  calculate,
  divide,
  isTrue,
  type Operation,
  plainNumber,
  toType,
} from '../values/numbers.ts';
import { args, collationOf, evalExpr, strict } from './expression-kinds.ts';
import type { Expression } from './mingo-library.ts';
import { numberOf } from './operators/numbers.ts';

function fold(name: string, operation: Operation, start: number): Expression {
  return strict((values) => {
    const date = values.find((value) => value instanceof Date);
    if (name === '$add' && values.filter((value) => value instanceof Date).length > 1)
      throw new CommandError(16612, 'only one date allowed in an $add expression');
    const numbers = values.filter((value) => value !== date).map((value) => numberOf(name, value, 14));
    const total = numbers.reduce((sum, value) => calculate(operation, sum, value), start);
    return date === undefined ? total : new Date(Number(date) + Math.round(plainNumber(total)));
  });
}

const subtract = strict(([a, b]) => {
  if (a instanceof Date && b instanceof Date) return asInteger(BigInt(Number(a) - Number(b)), true);
  if (a instanceof Date) return new Date(Number(a) - Math.round(plainNumber(numberOf('$subtract', b, 14))));
  return calculate('subtract', numberOf('$subtract', a, 14), numberOf('$subtract', b, 14));
});

function compares(holds: (order: number) => boolean): Expression {
  return (document, argument, options) => {
    const [a, b] = args(document, argument, options);
    return holds(compareValues(a, b, collationOf(options)));
  };
}

function rounds(name: string, mode: 'round' | 'trunc' | 'floor' | 'ceil'): Expression {
  return strict(([value, places = 0]) =>
    roundNumber(numberOf(name, value), { places: plainNumber(places), mode }),
  );
}

export const LOGIC: Record<string, Expression> = {
  $switch: firstBranch,
  $meta: (document, argument) => metaValue(document, argument),
  $and: (document, argument, options) => args(document, argument, options).every(isTrue),
  $or: (document, argument, options) => args(document, argument, options).some(isTrue),
  $not: (document, argument, options) => !isTrue(args(document, argument, options)[0]),
  $cond: (document, argument, options) => {
    const [condition, yes, no] = Array.isArray(argument) ? argument : partsOfCond(argument);
    const holds = isTrue(evalExpr(document, condition, options));
    return evalExpr(document, holds ? yes : no, options);
  },
  $cmp: (document, argument, options) => {
    const [a, b] = args(document, argument, options);
    return Math.sign(compareValues(a, b, collationOf(options)));
  },
  $eq: compares((order) => order === 0),
  $ne: compares((order) => order !== 0),
  $gt: compares((order) => order > 0),
  $gte: compares((order) => order >= 0),
  $lt: compares((order) => order < 0),
  $lte: compares((order) => order <= 0),
  $in: (document, argument, options) => {
    const [value, list] = args(document, argument, options);
    if (!Array.isArray(list)) throw new CommandError(40081, '$in requires an array as a second argument');
    return list.some((each) => equalValues(each, value, collationOf(options)));
  },
};

function partsOfCond(argument: unknown): unknown[] {
  const parts = isDocument(argument) ? argument : {};
  return (['if', 'then', 'else'] as const).map((name, i) => {
    if (name in parts) return parts[name];
    throw new CommandError(17080 + i, `Missing '${name}' parameter to $cond`);
  });
}

function firstBranch(...[document, argument, options]: Parameters<Expression>): unknown {
  const { branches, ...more } = isDocument(argument) ? argument : {};
  if (!Array.isArray(branches)) throw new CommandError(40060, "$switch expected an array for 'branches'");
  if (branches.length === 0) throw new CommandError(40068, '$switch requires at least one branch.');
  for (const branch of branches) {
    if (!isDocument(branch)) throw new CommandError(40062, '$switch expected each branch to be an object');
    if (!('case' in branch))
      throw new CommandError(40064, "$switch requires each branch have a 'case' expression");
    if (!('then' in branch))
      throw new CommandError(40065, "$switch requires each branch have a 'then' expression.");
    if (isTrue(evalExpr(document, branch.case, options))) return evalExpr(document, branch.then, options);
  }
  if ('default' in more) return evalExpr(document, more.default, options);
  throw new CommandError(
    40066,
    '$switch could not find a matching branch for an input, and no default was specified.',
  );
}

export const ARITHMETIC: Record<string, Expression> = {
  $add: fold('$add', 'add', 0),
  $multiply: fold('$multiply', 'multiply', 1),
  $subtract: subtract,
  $divide: strict(([a, b]) => divide(numberOf('$divide', a, 14), numberOf('$divide', b, 14))),
  $abs: strict(([value]) => {
    const number = numberOf('$abs', value);
    if (number instanceof Long && number.equals(Long.MIN_VALUE))
      throw new CommandError(28680, "can't take $abs of long long min");
    return plainNumber(number) < 0 ? calculate('subtract', 0, number) : number;
  }),
  $round: rounds('$round', 'round'),
  $trunc: rounds('$trunc', 'trunc'),
  $floor: rounds('$floor', 'floor'),
  $ceil: rounds('$ceil', 'ceil'),
  $mod: strict(([a, b]) => {
    const [left, right] = [numberOf('$mod', a, 16611), numberOf('$mod', b, 16611)];
    if (plainNumber(right) === 0) throw new CommandError(16610, "can't $mod by zero");
    return toType(plainNumber(left) % plainNumber(right), [left, right]);
  }),
  $pow: strict(([a, b]) => {
    const [left, right] = [numberOf("$pow's base", a, 28762), numberOf("$pow's exponent", b, 28763)];
    if (plainNumber(left) === 0 && plainNumber(right) < 0)
      throw new CommandError(28764, '$pow cannot take a base of 0 and a negative exponent');
    const power = plainNumber(left) ** plainNumber(right);
    return Number.isSafeInteger(power) ? toType(power, [left, right]) : power;
  }),
};
