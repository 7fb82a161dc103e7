/** Expressions of aggregations: mingo's operators, with our own where BSON's types matter. */
import { BSONRegExp, type Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { spend } from '../command-time.ts';
import { documentOf, entriesOf } from '../values/field-order.ts';
import { isDocument } from '../values/field-paths.ts';
import { asDouble, isNumber, plainNumber } from '../values/numbers.ts';
import { GATHERERS, type MakeGatherer } from './accumulators.ts';
import { ARITHMETIC, LOGIC } from './basic-operators.ts';
import {
  args,
  collationOf,
  datePart,
  evalExpr,
  inARow,
  made,
  named,
  ofList,
  strict,
} from './expression-kinds.ts';
import type { FilterScope } from './filter.ts';
import { type Accumulator, type Evaluation, type Expression, mingo } from './mingo-library.ts';
import { DATE_ARITHMETIC } from './operators/date-arithmetic.ts';
import { DATE_PARTS, DATE_TEXTS } from './operators/date-parts.ts';
import { LISTS, NAMED_LISTS } from './operators/lists.ts';
import { NUMBERS } from './operators/numbers.ts';
import { NAMED_TEXTS, TEXTS } from './operators/texts.ts';
import { mayTakeLong, withinTime } from './regular-expressions.ts';
import { SIZES } from './sizes.ts';
import { MemoryBudget } from './sorting.ts';
import { TYPES } from './type-conversions.ts';

/** Cost of one evaluation, after which the clock is checked. */
const EVALUATION_STEPS = 10_000;

/** The value of an expression for a document; undefined: no value. Throws CommandError. */
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
  // JavaScript's message would not help: "Cannot read properties of null".
  if (error instanceof TypeError) return new CommandError('TypeMismatch', 'a field has a wrong type');
  const [, operator] = /accumulator '(\$[^']*)' is not registered/.exec(error.message) ?? [];
  if (operator !== undefined) return new CommandError(168, `Unrecognized expression '${operator}'`);
  if (error.message.startsWith('Expression must contain a single operator'))
    return new CommandError(15983, 'an expression specification must contain exactly one field');
  if (error.message.startsWith('Use of undefined variable')) return new CommandError(17276, error.message);
  return new CommandError('BadValue', error.message);
}

/** Operators that run client code. Throws CommandError if one occurs. */
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

/** Converts all numbers to plain ones, for parts of mingo that support no others. */
export function plainDeep(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(plainDeep);
  if (isDocument(value)) return documentOf(entriesOf(value).map(([name, inner]) => [name, plainDeep(inner)]));
  return unboxed(value);
}

const toDouble = (value: unknown) => (typeof value === 'number' ? asDouble(value) : value);

const OWN: Record<string, Expression> = {
  ...made({ ...NUMBERS, ...TEXTS, ...LISTS }, inARow),
  ...made({ ...DATE_TEXTS, ...DATE_ARITHMETIC, ...NAMED_TEXTS, ...NAMED_LISTS }, named),
  ...made(DATE_PARTS, datePart),
};

const words = (names: string) => names.split(' ').map((name) => `$${name}`);

function table<T>(names: readonly string[], make: (name: string) => T): Record<string, T> {
  return Object.fromEntries(names.map((name) => [name, make(name)]));
}

/**
 * Our group accumulators, for the documents of one of mingo's stages, which passes the whole group
 * as the root.
 */
function gathered(name: string): Accumulator {
  return (documents, argument, options) => {
    const gatherer = (GATHERERS[name] as MakeGatherer)(new MemoryBudget(name), collationOf(options));
    const { update } = options as unknown as { update(locals: Document): Evaluation };
    for (const document of documents) {
      const own = update.call(options, { root: document });
      gatherer.add(evalExpr(document, argument, own), document as Document);
    }
    return gatherer.result();
  };
}

/** Accumulators over the values of one document: its operands, or a single list. */
function ofOneDocument(name: string): Expression {
  const ofGroup = gathered(name);
  return (document, argument, options) => {
    if (Array.isArray(document)) return ofGroup(document, argument, options);
    const values = args(document, argument, options);
    const [only] = values;
    const list = values.length === 1 && Array.isArray(only) ? only : values;
    spend(list.length);
    const gatherer = (GATHERERS[name] as MakeGatherer)(new MemoryBudget(name), collationOf(options));
    for (const value of list) gatherer.add(value, {});
    return gatherer.result();
  };
}

/** Accumulators over `input`: a list within a document, or one value per document in a group. */
function ofInput(name: string): Expression {
  const ofGroup = gathered(name);
  const ofList = named(name, ({ input, ...asked }) => {
    if (name.endsWith('N') && !Array.isArray(input))
      throw new CommandError(5788200, `The input to ${name} must be an array`);
    const gatherer = (GATHERERS[name] as MakeGatherer)(new MemoryBudget(name), null);
    for (const each of Array.isArray(input) ? input : [input]) gatherer.add({ ...asked, input: each }, {});
    return gatherer.result();
  });
  return (document, argument, options) =>
    (Array.isArray(document) ? ofGroup : ofList)(document as Document[], argument, options);
}

const PLAIN_ACCUMULATORS = words('covariancePop covarianceSamp');

const ACCUMULATORS: Record<string, Accumulator> = {
  ...table(
    Object.keys(GATHERERS).filter((name) => name !== '$count'),
    gathered,
  ),
  ...table(
    PLAIN_ACCUMULATORS,
    (name) => (documents, argument, options) =>
      mingo().accumulators[name]?.(documents.map(plainDeep), argument, options),
  ),
};

/** Returns its argument: mingo's own form of options, which can be reused at no cost. */
const CAPTURE: Record<string, Expression> = { $captureOptions: (_document, _argument, options) => options };

/** mingo's operator, with BSON regular expressions and a time limit. */
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
  const sigmoid = { $sigmoid: plainly(expressions.$sigmoid as Expression, toDouble) };
  const sizes = table(Object.keys(SIZES), (name) => strict(SIZES[name] as (values: unknown[]) => unknown));
  const lists = {
    $map: ofList('$map', 16883),
    $filter: ofList('$filter', 28651),
    $reduce: ofList('$reduce', 40080),
  };
  const regexes = table(words('regexMatch regexFind regexFindAll'), watchedRegex);
  return {
    expression: {
      ...known,
      ...LOGIC,
      ...ARITHMETIC,
      ...TYPES,
      ...sizes,
      ...OWN,
      ...table(words('sum avg min max stdDevPop stdDevSamp'), ofOneDocument),
      ...table(words('median percentile firstN lastN minN maxN'), ofInput),
      ...lists,
      ...sigmoid,
      ...regexes,
      ...CAPTURE,
    },
    accumulator: { ...knownAccumulators, ...ACCUMULATORS },
  };
}

let context: Evaluation['context'] | null = null;

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
  // Without a root, each evaluation uses its own document.
  return captured.update({ root: null });
}
