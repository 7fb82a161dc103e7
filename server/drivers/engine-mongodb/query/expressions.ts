/** Expressions of aggregations: mingo's operators, those that count with BSON's types being ours. */
import { BSONRegExp, type Document, Double, ObjectId } from 'bson';
import { CommandError } from '../command-error.ts';
import { spend } from '../command-time.ts';
import type { Collation } from '../values/collations.ts';
import { isDocument } from '../values/field-paths.ts';
import { compareValues, equalValues } from '../values/key-order.ts';
import { metaValue } from '../values/metadata.ts';
import { roundNumber } from '../values/number-rounding.ts';
import {
  asDouble,
  asInteger,
  type BsonNumber,
  calculate,
  divide,
  isNumber,
  isTrue,
  type Operation,
  plainNumber,
  toType,
} from '../values/numbers.ts';
import { typeNameOf } from '../values/type-names.ts';
import { GATHERERS } from './accumulators.ts';
import type { FilterScope } from './filter.ts';
import { type Accumulator, type Evaluation, type Expression, mingo } from './mingo-library.ts';
import { mayTakeLong, withinTime } from './regular-expressions.ts';
import { SIZES } from './sizes.ts';
import { MemoryBudget } from './sorting.ts';

const evalExpr: Expression = (document, argument, options) => mingo().evaluate(document, argument, options);

/** The clock is read before each: one may take long. */
const EVALUATION_STEPS = 10_000;

/** The value of an expression for a document; undefined: there is none. Throws CommandError. */
export function evaluate(document: unknown, expression: unknown, options: Evaluation): unknown {
  spend(EVALUATION_STEPS);
  try {
    return evalExpr(document, expression, options);
  } catch (error) {
    throw asCommandError(error);
  }
}

/**
 * Converts an error of evaluation, mingo's included, for the client: a field of an unexpected type, too deep
 * a recursion, too large a text. Errors of SQLite and the system are passed on.
 */
export function asCommandError(error: unknown): unknown {
  if (error instanceof CommandError || !(error instanceof Error)) return error;
  if ('errcode' in error || 'errno' in error) return error;
  // JavaScript's text would not help: "Cannot read properties of null".
  if (error instanceof TypeError) return new CommandError('TypeMismatch', 'a field has a wrong type');
  const [, operator] = /accumulator '(\$[^']*)' is not registered/.exec(error.message) ?? [];
  if (operator !== undefined) return new CommandError(168, `Unrecognized expression '${operator}'`);
  if (error.message.startsWith('Use of undefined variable')) return new CommandError(17276, error.message);
  return new CommandError('BadValue', error.message);
}

/** Names behind which code of the client would run. Throws CommandError where one stands. */
export function assertNoScripts(value: unknown): void {
  if (Array.isArray(value)) for (const each of value) assertNoScripts(each);
  if (!isDocument(value)) return;
  for (const [name, inner] of Object.entries(value)) {
    if (name === '$function' || name === '$accumulator') throw noScripts();
    if (name === '$where') throw new CommandError('BadValue', '$where is not allowed in this context');
    if (name !== '$literal') assertNoScripts(inner);
  }
}

/** The error of a server with scripting disabled. */
export function noScripts(): CommandError {
  return new CommandError(31264, 'Cannot run server-side javascript without the javascript engine enabled');
}

function args(document: unknown, argument: unknown, options: Evaluation): unknown[] {
  const value = evalExpr(document, argument, options);
  return Array.isArray(argument) ? (value as unknown[]) : [value];
}

const isNil = (value: unknown) => value === null || value === undefined;

/** An expression of one or more arguments; null when one of them is null. */
function strict(work: (values: unknown[]) => unknown): Expression {
  return (document, argument, options) => {
    const values = args(document, argument, options);
    return values.some(isNil) ? null : work(values);
  };
}

function numberOf(name: string, value: unknown): BsonNumber {
  if (isNumber(value)) return value;
  throw new CommandError('TypeMismatch', `${name} only supports numeric types, not ${typeNameOf(value)}`);
}

function fold(name: string, operation: Operation, start: number): Expression {
  return strict((values) => {
    const date = values.find((value) => value instanceof Date);
    const numbers = values.filter((value) => value !== date).map((value) => numberOf(name, value));
    const total = numbers.reduce((sum, value) => calculate(operation, sum, value), start);
    return date === undefined ? total : new Date(Number(date) + Math.round(plainNumber(total)));
  });
}

const subtract = strict(([a, b]) => {
  if (a instanceof Date && b instanceof Date) return asInteger(BigInt(Number(a) - Number(b)), true);
  if (a instanceof Date) return new Date(Number(a) - Math.round(plainNumber(numberOf('$subtract', b))));
  return calculate('subtract', numberOf('$subtract', a), numberOf('$subtract', b));
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

/** mingo's, with plain numbers for its arguments; `wrap` makes its result BSON's. */
function plainly(operator: Expression, wrap: (value: unknown) => unknown = (value) => value): Expression {
  return (document, argument, options) => {
    const literal = (inner: unknown) => ({
      $literal: unboxed(evalExpr(document, inner, options)),
    });
    const isNamed = isDocument(argument) && !Object.keys(argument)[0]?.startsWith('$');
    const plain = Array.isArray(argument)
      ? argument.map(literal)
      : isNamed
        ? Object.fromEntries(Object.entries(argument).map(([name, inner]) => [name, literal(inner)]))
        : literal(argument);
    return wrap(operator(document, plain, options));
  };
}

function unboxed(value: unknown): unknown {
  return isNumber(value) ? plainNumber(value) : value;
}

/** The value with plain numbers all through, for what of mingo knows no others. */
export function plainDeep(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(plainDeep);
  if (isDocument(value))
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plainDeep(inner)]));
  return unboxed(value);
}

const toDouble = (value: unknown) => (typeof value === 'number' ? asDouble(value) : value);

const LOGIC: Record<string, Expression> = {
  $meta: (document, argument) => metaValue(document, argument),
  $and: (document, argument, options) => args(document, argument, options).every(isTrue),
  $or: (document, argument, options) => args(document, argument, options).some(isTrue),
  $not: (document, argument, options) => !isTrue(args(document, argument, options)[0]),
  $cond: (document, argument, options) => {
    const [condition, yes, no] = Array.isArray(argument)
      ? argument
      : [(argument as Document).if, (argument as Document).then, (argument as Document).else];
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

const ARITHMETIC: Record<string, Expression> = {
  $add: fold('$add', 'add', 0),
  $multiply: fold('$multiply', 'multiply', 1),
  $subtract: subtract,
  $divide: strict(([a, b]) => divide(numberOf('$divide', a), numberOf('$divide', b))),
  $abs: strict(([value]) => {
    const number = numberOf('$abs', value);
    return plainNumber(number) < 0 ? calculate('subtract', 0, number) : number;
  }),
  $round: rounds('$round', 'round'),
  $trunc: rounds('$trunc', 'trunc'),
  $floor: rounds('$floor', 'floor'),
  $ceil: rounds('$ceil', 'ceil'),
  $mod: strict(([a, b]) => {
    const [left, right] = [numberOf('$mod', a), numberOf('$mod', b)];
    if (plainNumber(right) === 0) throw new CommandError(16610, "can't $mod by zero");
    return toType(plainNumber(left) % plainNumber(right), [left, right]);
  }),
  $pow: strict(([a, b]) => {
    const [left, right] = [numberOf('$pow', a), numberOf('$pow', b)];
    const power = plainNumber(left) ** plainNumber(right);
    return Number.isSafeInteger(power) ? toType(power, [left, right]) : power;
  }),
};

const TYPES: Record<string, Expression> = {
  $type: (document, argument, options) => typeNameOf(args(document, argument, options)[0]),
  $isNumber: (document, argument, options) => isNumber(args(document, argument, options)[0]),
  $toBool: strict(([value]) => isTrue(value)),
  ...Object.fromEntries(
    (['int', 'long', 'double', 'decimal', 'string', 'objectId'] as const).map((type) => [
      `$to${type[0]?.toUpperCase()}${type.slice(1)}`,
      strict(([value]) => converted(value, type)),
    ]),
  ),
  $convert: (document, argument, options) => {
    const { input, to, onError, onNull } = argument as Document;
    const value = evalExpr(document, input, options);
    if (isNil(value)) return evalExpr(document, onNull ?? null, options);
    try {
      const type = String(evalExpr(document, to, options));
      if (type === 'bool') return isTrue(value);
      return type === 'date'
        ? mingo().expressions.$toDate?.(value, '$$CURRENT', options)
        : converted(value, type);
    } catch (error) {
      if (onError === undefined) throw error;
      return evalExpr(document, onError, options);
    }
  },
};

function converted(value: unknown, type: string): unknown {
  const fail = () =>
    new CommandError(241, `Unsupported conversion from ${typeNameOf(value)} to ${type} in $convert`);
  if (type === 'string') {
    if (value instanceof Date) return value.toISOString();
    if (value instanceof ObjectId) return value.toHexString();
    if (value instanceof Double) return String(value.value);
    if (isNumber(value) || typeof value === 'string' || typeof value === 'boolean') return String(value);
    throw fail();
  }
  if (type === 'objectId') {
    if (value instanceof ObjectId) return value;
    if (typeof value === 'string' && ObjectId.isValid(value) && value.length === 24)
      return new ObjectId(value);
    throw fail();
  }
  if (typeof value === 'boolean') return toType(Number(value), [], type);
  if (value instanceof Date) return toType(Number(value), [], type);
  if (typeof value === 'string') {
    if (value.trim() !== value || value === '' || Number.isNaN(Number(value)))
      throw new CommandError(241, `Failed to parse number '${value}' in $convert with no onError value`);
    return toType(value, [], type);
  }
  if (!isNumber(value)) throw fail();
  return toType(value, [], type);
}

const words = (names: string) => names.split(' ').map((name) => `$${name}`);

function table<T>(names: readonly string[], make: (name: string) => T): Record<string, T> {
  return Object.fromEntries(names.map((name) => [name, make(name)]));
}

const DOUBLE_RESULTS = words(
  'exp ln log log10 sqrt sigmoid degreesToRadians radiansToDegrees ' +
    'acos acosh asin asinh atan atan2 atanh cos cosh sin sinh tan tanh',
);
const PLAIN_ARGUMENTS = words(
  'range arrayElemAt slice substr substrBytes substrCP indexOfArray firstN lastN bitAnd bitNot bitOr bitXor ' +
    'dateAdd dateSubtract dateTrunc dateFromParts toDate',
);

function adapted(names: readonly string[], wrap?: (value: unknown) => unknown): Record<string, Expression> {
  return table(names, (name) => plainly(mingo().expressions[name] as Expression, wrap));
}

/** The values of an expression for all documents of a group. */
const collect = (...words: Parameters<Accumulator>) => mingo().accumulators.$push?.(...words) as unknown[];

/** Ours of groups, for the values of one array. */
const gathered =
  (name: string): Accumulator =>
  (documents, argument, options) => {
    const gatherer = GATHERERS[name]?.(new MemoryBudget(name), collationOf(options));
    for (const value of collect(documents, argument, options)) gatherer?.add(value);
    return gatherer?.result();
  };

const PLAIN_ACCUMULATORS = words('stdDevPop stdDevSamp covariancePop covarianceSamp median percentile');

const ACCUMULATORS: Record<string, Accumulator> = {
  ...table(words('sum avg min max addToSet'), gathered),
  ...table(
    PLAIN_ACCUMULATORS,
    (name) => (documents, argument, options) =>
      mingo().accumulators[name]?.(documents.map(plainDeep), argument, options),
  ),
};

/** Gives back what it is called with: mingo's own form of options, which costs nothing to use again. */
const CAPTURE: Record<string, Expression> = { $captureOptions: (_document, _argument, options) => options };

/** mingo's, which knows no regular expressions of BSON's, and would wait for one that never ends. */
function watchedRegex(name: string): Expression {
  const operator = mingo().expressions[name] as Expression;
  return (document, argument, options) => {
    const { regex: given, ...rest } = argument as Document;
    const isBson = given instanceof BSONRegExp;
    const regex = isBson ? given.pattern : given;
    const plain = isBson ? { options: given.options, ...rest, regex } : argument;
    const work = () => operator(document, plain, options);
    return typeof regex === 'string' && !mayTakeLong(regex, (plain as Document).options ?? '')
      ? work()
      : withinTime(work);
  };
}

function operators(): object {
  const { expressions, accumulators } = mingo();
  const { $function: _function, $toHashedIndexKey: _hash, ...known } = expressions;
  const { $accumulator: _accumulator, ...knownAccumulators } = accumulators;
  const adaptedOnes = { ...adapted(DOUBLE_RESULTS, toDouble), ...adapted(PLAIN_ARGUMENTS) };
  const sizes = table(Object.keys(SIZES), (name) => strict(SIZES[name] as (values: unknown[]) => unknown));
  const regexes = table(words('regexMatch regexFind regexFindAll'), watchedRegex);
  return {
    expression: {
      ...known,
      ...LOGIC,
      ...ARITHMETIC,
      ...TYPES,
      ...sizes,
      ...adaptedOnes,
      ...regexes,
      ...CAPTURE,
    },
    accumulator: { ...knownAccumulators, ...ACCUMULATORS },
  };
}

let context: Evaluation['context'] | null = null;

/** The collation of this evaluation, stored in mingo's field for its own. */
export function collationOf({ collation }: Evaluation): Collation | null {
  return (collation as Collation | null | undefined) ?? null;
}

/** Options for evaluating expressions. */
export function evaluation(
  { variables = {}, collation = null }: FilterScope = {},
  more: Partial<Evaluation> = {},
): Evaluation {
  context ??= mingo().context(operators());
  const options = { context, variables, collation, scriptEnabled: false, ...more };
  const captured = evalExpr({}, { $captureOptions: 1 }, options as unknown as Evaluation) as {
    update(locals: Document): Evaluation;
  };
  // Without a root each evaluation takes its own document for it.
  return captured.update({ root: null });
}
