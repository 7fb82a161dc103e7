/** Filters of queries, compiled: what MongoDB calls MQL predicates. */
import { BSONRegExp, BSONSymbol, type Document, MaxKey, MinKey } from 'bson';
import { CommandError } from '../command-error.ts';
import { locationsOf } from '../geo/locations.ts';
import { nearOf, readRegion } from '../geo/regions.ts';
import { assertText } from '../text/text-index.ts';
import type { Collation } from '../values/collations.ts';
import { candidatesOf, isDocument, leavesAt } from '../values/field-paths.ts';
import { compareValues, equalValues, holdsText, TAG, tagOf, textKeyOf } from '../values/key-order.ts';
import { isNumber, isTrue, plainNumber } from '../values/numbers.ts';
import { isOfType, readTypes } from '../values/type-names.ts';
import { compileBitTest, isBitTest } from './bit-tests.ts';
import { assertNoScripts, evaluate, evaluation } from './expressions.ts';
import { compileSchema, keeps } from './json-schema.ts';
import { compileRegex, readRegex } from './regular-expressions.ts';

export type Filter = (document: Document) => boolean;

/** Inputs of conditions, besides the document. */
export interface FilterScope {
  /** Values of `let` variables. */
  readonly variables?: Document;
  /** Collation of text comparisons; null: binary. */
  readonly collation?: Collation | null;
  /** Set for a query that an index may serve: receives the name of an operator that requires one. */
  readonly special?: { name: string | null } | undefined;
  /** The filter is for elements of an array, and may name the fields of a reference (DBRef). */
  readonly isElement?: boolean;
}

/** Tested against all values at the end of a path. */
type Condition = (leaves: readonly unknown[]) => boolean;

const bad = (message: string) => new CommandError('BadValue', message);

/** Throws CommandError if it is not a filter, or runs scripts. */
export function compileFilter(filter: Document, scope: FilterScope = {}): Filter {
  if (!isDocument(filter))
    throw new CommandError('TypeMismatch', 'Expected field filter to be of type object');
  const tests = Object.keys(filter).map((name) => compileTerm(name, filter[name], scope));
  const [only] = tests;
  if (tests.length === 1 && only !== undefined) return only;
  return (document) => tests.every((test) => test(document));
}

function compileTerm(name: string, value: unknown, scope: FilterScope): Filter {
  if (!name.startsWith('$') || (scope.isElement === true && OF_REFERENCE.has(name))) {
    const path = name.split('.');
    const condition = compileValue(value, scope);
    return (document) => condition(leavesAt(document, path));
  }
  switch (name) {
    case '$and':
    case '$or':
    case '$nor': {
      const inner = name === '$and' ? scope : { ...scope, special: undefined };
      const filters = listOf(name, value).map((each) => compileFilter(each as Document, inner));
      if (name === '$and') return (document) => filters.every((test) => test(document));
      if (name === '$or') return (document) => filters.some((test) => test(document));
      return (document) => !filters.some((test) => test(document));
    }
    case '$sampleRate': {
      const rate = isNumber(value) ? plainNumber(value) : Number.NaN;
      if (!(rate >= 0 && rate <= 1)) throw bad('numeric argument to $sampleRate must be in [0, 1]');
      const options = evaluation(scope);
      return () => plainNumber(evaluate({}, { $rand: {} }, options)) < rate;
    }
    case '$expr': {
      assertNoScripts(value);
      const options = evaluation(scope);
      return (document) => isTrue(evaluate(document, value, options));
    }
    case '$comment':
      return () => true;
    case '$where':
      throw new CommandError(6108304, 'no globalScriptEngine in $where parsing');
    case '$text':
      return isSearched(value, scope);
    case '$jsonSchema': {
      const schema = compileSchema(value);
      return (document) => keeps(schema, document);
    }
    default:
      throw bad(`unknown top level operator: ${name}`);
  }
}

function listOf(name: string, value: unknown): unknown[] {
  if (!Array.isArray(value)) throw bad(`${name} must be an array`);
  if (value.length === 0) throw bad('$and/$or/$nor must be a nonempty array');
  if (!value.every(isDocument)) throw bad('$or/$and/$nor entries need to be full objects');
  return value;
}

/** Whether a value of a filter contains operators, instead of being compared. */
export function holdsOperators(value: unknown): value is Document {
  if (!isDocument(value)) return false;
  const [first = ''] = Object.keys(value);
  return first.startsWith('$') && !OF_REFERENCE.has(first);
}

/** Fields of a reference (DBRef), which are no operators. */
const OF_REFERENCE: ReadonlySet<string> = new Set(['$ref', '$id', '$db']);

/** Whether an operator applies to a document rather than a value. */
export function isOfDocuments(operator: string): boolean {
  return /^\$(?:and|or|nor|expr|where|text|jsonSchema|comment|sampleRate)$/.test(operator);
}

/** Compiles the value of a field in a filter. */
export function compileValue(value: unknown, scope: FilterScope = {}): Condition {
  if (value instanceof BSONRegExp) return matchesRegex(value);
  if (!holdsOperators(value)) return equals(value, scope);
  if ('$options' in value && !('$regex' in value)) throw bad('$options needs a $regex');
  const tests = Object.keys(value)
    .filter((name) => name !== '$options')
    .map((name) => compileOperator(name, value, scope));
  const [only] = tests;
  if (tests.length === 1 && only !== undefined) return only;
  return (leaves) => tests.every((test) => test(leaves));
}

function compileOperator(name: string, all: Document, scope: FilterScope): Condition {
  const value: unknown = all[name];
  switch (name) {
    case '$eq':
      return equals(value, scope);
    case '$ne':
      if (value instanceof BSONRegExp) throw bad("Can't have regex as arg to $ne.");
      return not(equals(value, scope));
    case '$gt':
      return compares(value, (order) => order > 0, scope);
    case '$gte':
      return compares(value, (order) => order >= 0, scope);
    case '$lt':
      return compares(value, (order) => order < 0, scope);
    case '$lte':
      return compares(value, (order) => order <= 0, scope);
    case '$in':
      return isIn(value, scope, '$in');
    case '$nin':
      return not(isIn(value, scope, '$nin'));
    case '$not':
      if (!(value instanceof BSONRegExp) && !holdsOperators(value))
        throw bad('$not needs a regex or a document');
      return not(compileValue(value, scope));
    case '$exists':
      return isTrue(value) ? (leaves) => leaves.some(isThere) : (leaves) => !leaves.some(isThere);
    case '$regex':
      return matchesRegex(readRegex(value, all.$options));
    case '$elemMatch':
      return elementMatches(value, scope);
    case '$all':
      return holdsAll(value, scope);
    case '$size': {
      const size = plainNumber(value);
      if (!Number.isInteger(size) || size < 0)
        throw bad(`Failed to parse $size. Expected a non-negative integer`);
      return (leaves) => leaves.some((leaf) => Array.isArray(leaf) && leaf.length === size);
    }
    case '$type': {
      const types = readTypes(value);
      return (leaves) => candidatesOf(leaves).some((each) => types.some((type) => isOfType(each, type)));
    }
    case '$mod':
      return hasRemainder(value);
    case '$geoWithin':
    case '$within':
    case '$geoIntersects':
      return isInRegion(name, value);
    case '$near':
    case '$nearSphere':
      return isNear(name, all, scope);
    case '$maxDistance':
    case '$minDistance':
      if ('$near' in all || '$nearSphere' in all) return () => true;
      throw bad(`${name} needs $near or $nearSphere beside it`);
    default: {
      if (!isBitTest(name)) throw bad(`unknown operator: ${name}`);
      const hasBits = compileBitTest(name, value);
      return (leaves) => candidatesOf(leaves).some(hasBits);
    }
  }
}

const isThere = (leaf: unknown) => leaf !== undefined;

const not =
  (condition: Condition): Condition =>
  (leaves) =>
    !condition(leaves);

function equals(value: unknown, { collation = null }: FilterScope): Condition {
  if (value === null || value === undefined)
    return (leaves) => candidatesOf(leaves).some((leaf) => leaf === null || leaf === undefined);
  const tag = tagOf(value);
  if (collation !== null && holdsText(value)) {
    const key = textKeyOf(value, collation);
    return (leaves) =>
      candidatesOf(leaves).some((leaf) => tagOf(leaf) === tag && textKeyOf(leaf, collation) === key);
  }
  if (typeof value === 'string') return (leaves) => candidatesOf(leaves).includes(value);
  return (leaves) =>
    candidatesOf(leaves).some(
      (leaf) => leaf === value || (tagOf(leaf) === tag && compareValues(leaf, value) === 0),
    );
}

function compares(value: unknown, holds: (order: number) => boolean, scope: FilterScope): Condition {
  const { collation = null } = scope;
  if (value === null || value === undefined) return holds(0) ? equals(null, scope) : () => false;
  if (value instanceof BSONRegExp) throw bad("Can't have RegEx as arg to predicate over field");
  if (value instanceof MinKey || value instanceof MaxKey) {
    return (leaves) =>
      candidatesOf(leaves).some((leaf) => leaf !== undefined && holds(compareValues(leaf, value)));
  }
  const tag = tagOf(value);
  const isNumber = tag === TAG.number;
  // NaN is the smallest number when sorted, but neither less nor more than another.
  const wantsNaN = isNumber && Number.isNaN(plainNumber(value));
  return (leaves) =>
    candidatesOf(leaves).some(
      (leaf) =>
        tagOf(leaf) === tag &&
        holds(compareValues(leaf, value, collation)) &&
        (!isNumber || Number.isNaN(plainNumber(leaf)) === wantsNaN),
    );
}

function isIn(value: unknown, { collation = null }: FilterScope, name: string): Condition {
  if (!Array.isArray(value)) throw bad(`${name} needs an array`);
  if (value.some(holdsOperators)) throw bad(`cannot nest $ under ${name}`);
  const patterns = value.filter((each) => each instanceof BSONRegExp).map(matchesRegex);
  const isPlain = (each: unknown) => typeof each === 'string' && collation === null;
  const plain = new Set(value.filter(isPlain));
  const others = new Set(value.filter((each) => !isPlain(each)).map((each) => textKeyOf(each, collation)));
  const holdsNull = value.some((each) => each === null || each === undefined);
  return (leaves) =>
    candidatesOf(leaves).some((leaf) => {
      if (leaf === null || leaf === undefined) return holdsNull;
      if (isPlain(leaf)) return plain.has(leaf);
      return others.size > 0 && others.has(textKeyOf(leaf, collation));
    }) || patterns.some((test) => test(leaves));
}

function matchesRegex(regex: BSONRegExp): Condition {
  const test = compileRegex(regex);
  return (leaves) =>
    candidatesOf(leaves).some((leaf) => {
      if (typeof leaf === 'string') return test(leaf);
      if (leaf instanceof BSONSymbol) return test(leaf.value);
      return leaf instanceof BSONRegExp && equalValues(leaf, regex);
    });
}

function elementMatches(value: unknown, scope: FilterScope): Condition {
  if (!isDocument(value)) throw bad('$elemMatch needs an Object');
  const arrays = (leaves: readonly unknown[]) => leaves.filter(Array.isArray) as unknown[][];
  const [first = ''] = Object.keys(value);
  if (holdsOperators(value) && !isOfDocuments(first)) {
    const test = compileValue(value, scope);
    return (leaves) => arrays(leaves).some((list) => list.some((element) => test([element])));
  }
  const test = compileFilter(value, { ...scope, special: undefined, isElement: true });
  const isNested = (element: unknown) => isDocument(element) || Array.isArray(element);
  return (leaves) =>
    arrays(leaves).some((list) => list.some((element) => isNested(element) && test(element as Document)));
}

function holdsAll(value: unknown, scope: FilterScope): Condition {
  if (!Array.isArray(value)) throw bad('$all needs an array');
  const tests = value.map((each) =>
    isDocument(each) && '$elemMatch' in each
      ? elementMatches(each.$elemMatch, scope)
      : compileEach(each, scope),
  );
  return (leaves) => tests.length > 0 && tests.every((test) => test(leaves));
}

function compileEach(value: unknown, scope: FilterScope): Condition {
  if (holdsOperators(value)) throw bad('no $ expressions in $all');
  return value instanceof BSONRegExp ? matchesRegex(value) : equals(value, scope);
}

/** Documents are matched where the index is read. */
function isSearched(value: unknown, { special }: FilterScope): Filter {
  if (special === undefined)
    throw new CommandError(17313, '$match with $text is only allowed as the first pipeline stage');
  if (special.name !== null) throw bad('Too many text expressions');
  assertText(value);
  special.name = '$text';
  return () => true;
}

function isInRegion(name: string, value: unknown): Condition {
  const region = readRegion(name === '$geoIntersects' ? name : '$geoWithin', value);
  return (leaves) => leaves.some((leaf) => locationsOf(leaf).some((each) => region.holds(each)));
}

/** Distances are computed where documents are read. */
function isNear(name: string, operators: Document, { special }: FilterScope): Condition {
  if (special === undefined)
    throw new CommandError(5626500, `$geoNear, $near, and $nearSphere are not allowed in this context`);
  if (special.name !== null) throw bad('Too many geoNear expressions');
  nearOf(operators);
  special.name = name;
  return () => true;
}

function hasRemainder(value: unknown): Condition {
  if (!Array.isArray(value) || value.length < 2) throw bad('malformed mod, not enough elements');
  if (value.length > 2) throw bad('malformed mod, too many elements');
  const [divisor, remainder] = value.map((each) => Math.trunc(plainNumber(each))) as [number, number];
  if (divisor === 0) throw bad('divisor cannot be 0');
  return (leaves) =>
    candidatesOf(leaves).some(
      (leaf) => tagOf(leaf) === TAG.number && Math.trunc(plainNumber(leaf)) % divisor === remainder,
    );
}
