/**
 * `$jsonSchema`: JSON Schema draft 4 in MongoDB's form, with `bsonType`. A rule tells whether a
 * value satisfies it, and, for a validator's error, why not.
 */
import { BSONRegExp, type Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { spend } from '../command-time.ts';
import { isDocument } from '../values/field-paths.ts';
import { compareValues, textKeyOf } from '../values/key-order.ts';
import { calculate, isNumber, plainNumber } from '../values/numbers.ts';
import { isOfType, readTypes, typeNameOf } from '../values/type-names.ts';
import { compileRegex } from './regular-expressions.ts';

interface Rule {
  holds(value: unknown): boolean;
  /** The reason why a value violates it. */
  why(value: unknown): Document;
}

/** The rules of a schema; a value is valid if it satisfies all of them. */
export type Schema = readonly Rule[];

export function keeps(schema: Schema, value: unknown): boolean {
  spend(schema.length);
  return schema.every((rule) => rule.holds(value));
}

/** The rules that a value violates, with the texts of the server's validation errors. */
export function brokenRules(schema: Schema, value: unknown): Document[] {
  return schema.filter((rule) => !rule.holds(value)).map((rule) => rule.why(value));
}

const failed = (message: string) => new CommandError('FailedToParse', message);
const wrongType = (name: string, wanted: string) =>
  new CommandError('TypeMismatch', `$jsonSchema keyword '${name}' must be ${wanted}`);

/** JSON types and their BSON equivalents. */
const JSON_TYPES: Readonly<Record<string, string>> = {
  object: 'object',
  array: 'array',
  string: 'string',
  number: 'number',
  boolean: 'bool',
  null: 'null',
};
const NOT_SUPPORTED = new Set(['$ref', '$schema', 'default', 'definitions', 'format', 'id']);

type Compile = (operand: unknown, name: string, schema: Document) => Rule | null;

/** Throws CommandError if it is not a schema of MongoDB. */
export function compileSchema(schema: unknown): Schema {
  if (!isDocument(schema)) throw new CommandError('TypeMismatch', '$jsonSchema must be an object');
  return Object.entries(schema).flatMap(([name, operand]) => {
    if (NOT_SUPPORTED.has(name)) throw failed(`$jsonSchema keyword '${name}' is not currently supported`);
    const compile = Object.hasOwn(KEYWORDS, name) ? KEYWORDS[name] : undefined;
    if (compile === undefined) throw failed(`Unknown $jsonSchema keyword: ${name}`);
    const rule = compile(operand, name, schema);
    return rule === null ? [] : [rule];
  });
}

interface Test {
  readonly name: string;
  readonly operand: unknown;
  readonly reason?: string;
  /** Which values the rule applies to; others always pass. */
  readonly isFor?: (value: unknown) => boolean;
  readonly holds: (value: never) => boolean;
  readonly details?: (value: never) => Document;
}

function rule({ name, operand, reason, isFor = () => true, holds, details }: Test): Rule {
  return {
    holds: (value) => !isFor(value) || holds(value as never),
    why: (value) => ({
      operatorName: name,
      specifiedAs: { [name]: operand },
      ...(reason === undefined ? {} : { reason, consideredValue: value }),
      ...details?.(value as never),
    }),
  };
}

const isText = (value: unknown) => typeof value === 'string';
const isList = (value: unknown) => Array.isArray(value);

function types(names: readonly string[], operand: unknown, name: string): Rule {
  return rule({
    name,
    operand,
    reason: 'type did not match',
    holds: (value) => names.some((each) => isOfType(value, each)),
    details: (value) => ({ consideredType: typeNameOf(value) }),
  });
}

function jsonTypes(operand: unknown): Rule {
  const names = [operand].flat().map((each) => {
    if (typeof each !== 'string') throw wrongType('type', 'a string or an array of strings');
    if (each === 'integer') throw failed("$jsonSchema type 'integer' is not currently supported.");
    const name = Object.hasOwn(JSON_TYPES, each) ? JSON_TYPES[each] : undefined;
    if (name === undefined) throw new CommandError('BadValue', `Unknown type name alias: ${each}`);
    return name;
  });
  return types(names, operand, 'type');
}

/** A non-negative integer. */
function countOf(operand: unknown, name: string): number {
  const count = isNumber(operand) ? plainNumber(operand) : Number.NaN;
  if (Number.isInteger(count) && count >= 0) return count;
  throw failed(`$jsonSchema keyword '${name}' must be a non-negative integer`);
}

function size(kind: 'Items' | 'Length' | 'Properties', direction: 1 | -1): Compile {
  const measures = { Items: isList, Length: isText, Properties: isDocument };
  const measure = (value: unknown) => {
    if (typeof value === 'string') return [...value].length;
    return Array.isArray(value) ? value.length : Object.keys(value as Document).length;
  };
  return (operand, name) => {
    const limit = countOf(operand, name);
    return rule({
      name,
      operand,
      reason: direction > 0 ? 'specified minimum was not met' : 'specified maximum was exceeded',
      isFor: measures[kind],
      holds: (value) => direction * (measure(value) - limit) >= 0,
    });
  };
}

function bound(direction: 1 | -1): Compile {
  return (operand, name, schema) => {
    if (!isNumber(operand)) throw wrongType(name, 'a number');
    const exclusive = schema[`exclusive${name === 'minimum' ? 'Minimum' : 'Maximum'}`];
    const isExclusive = exclusive === true;
    return rule({
      name,
      operand,
      reason: 'comparison failed',
      isFor: isNumber,
      holds: (value) => {
        const order = direction * compareValues(value, operand);
        return isExclusive ? order > 0 : order >= 0;
      },
    });
  };
}

const exclusive: Compile = (operand, name, schema) => {
  if (typeof operand !== 'boolean') throw wrongType(name, 'a boolean');
  const limit = name === 'exclusiveMinimum' ? 'minimum' : 'maximum';
  if (limit in schema) return null;
  throw failed(`$jsonSchema keyword '${limit}' must be a present if ${name} is present`);
};

const multipleOf: Compile = (operand, name) => {
  if (!isNumber(operand) || !(plainNumber(operand) > 0))
    throw failed("$jsonSchema keyword 'multipleOf' must have a positive value");
  const isMultiple = (value: unknown) => {
    const [number, step] = [plainNumber(value), plainNumber(operand)];
    if (Number.isSafeInteger(number) && Number.isSafeInteger(step)) return number % step === 0;
    const quotient = Math.round(number / step);
    return compareValues(calculate('multiply', quotient, operand), value) === 0;
  };
  const reason = 'considered value is not a multiple of the specified value';
  return rule({ name, operand, reason, isFor: isNumber, holds: isMultiple });
};

const pattern: Compile = (operand, name) => {
  if (typeof operand !== 'string') throw wrongType(name, 'a string');
  const test = compileRegex(new BSONRegExp(operand, ''));
  return rule({ name, operand, reason: 'regular expression did not match', isFor: isText, holds: test });
};

const oneOfValues: Compile = (operand, name) => {
  if (!Array.isArray(operand) || operand.length === 0)
    throw failed("$jsonSchema keyword 'enum' cannot be an empty array");
  const reason = 'value was not found in enum';
  const values = new Set(operand.map((each) => textKeyOf(each)));
  return rule({ name, operand, reason, holds: (value) => values.has(textKeyOf(value)) });
};

const uniqueItems: Compile = (operand, name) => {
  if (typeof operand !== 'boolean') throw wrongType(name, 'a boolean');
  if (!operand) return null;
  const holds = (list: unknown[]) => new Set(list.map((each) => textKeyOf(each))).size === list.length;
  return rule({ name, operand, reason: 'found a duplicate item', isFor: isList, holds });
};

function listOf(operand: unknown, name: string): readonly Schema[] {
  if (!Array.isArray(operand)) throw wrongType(name, 'an array');
  if (operand.length === 0)
    throw new CommandError('BadValue', `$jsonSchema keyword '${name}' cannot be empty`);
  return operand.map(compileSchema);
}

/** `allOf`, `anyOf` and `oneOf`: how many of the schemas must be satisfied. */
function several(isEnough: (kept: number, all: number) => boolean): Compile {
  return (operand, name) => {
    const schemas = listOf(operand, name);
    const kept = (value: unknown) => schemas.filter((schema) => keeps(schema, value)).length;
    return rule({
      name,
      operand,
      holds: (value) => isEnough(kept(value), schemas.length),
      details: (value) => ({
        schemasNotSatisfied: schemas.flatMap((schema, index) => {
          const details = brokenRules(schema, value);
          return details.length === 0 ? [] : [{ index, details }];
        }),
      }),
    });
  };
}

const not: Compile = (operand, name) => {
  const schema = compileSchema(operand);
  return rule({ name, operand, reason: 'child expression matched', holds: (value) => !keeps(schema, value) });
};

function namesOf(operand: unknown, name: string): string[] {
  if (!Array.isArray(operand) || !operand.every(isText)) throw wrongType(name, 'an array of strings');
  if (operand.length === 0) throw failed(`$jsonSchema keyword '${name}' cannot be an empty array`);
  return operand;
}

const required: Compile = (operand, name) => {
  const names = namesOf(operand, name);
  const missing = (value: Document) => names.filter((each) => !Object.hasOwn(value, each));
  return rule({
    name,
    operand,
    isFor: isDocument,
    holds: (value: Document) => missing(value).length === 0,
    details: (value: Document) => ({ missingProperties: missing(value) }),
  });
};

function schemasOf(operand: unknown, name: string): [string, Schema][] {
  if (!isDocument(operand)) throw wrongType(name, 'an object');
  return Object.entries(operand).map(([each, schema]) => [each, compileSchema(schema)]);
}

const properties: Compile = (operand, name) => {
  const schemas = schemasOf(operand, name);
  const broken = (value: Document) =>
    schemas.filter(([each, schema]) => Object.hasOwn(value, each) && !keeps(schema, value[each]));
  return {
    holds: (value) => !isDocument(value) || broken(value).length === 0,
    why: (value) => ({
      operatorName: name,
      propertiesNotSatisfied: broken(value as Document).map(([propertyName, schema]) => ({
        propertyName,
        ...descriptionOf((operand as Document)[propertyName]),
        details: brokenRules(schema, (value as Document)[propertyName]),
      })),
    }),
  };
};

function descriptionOf({ title, description }: Document): Document {
  return { ...(title === undefined ? {} : { title }), ...(description === undefined ? {} : { description }) };
}

const patternProperties: Compile = (operand, name) => {
  const schemas = schemasOf(operand, name).map(
    ([each, schema]) => [compileRegex(new BSONRegExp(each, '')), schema] as const,
  );
  const holds = (value: Document) =>
    Object.entries(value).every(([field, inner]) =>
      schemas.every(([test, schema]) => !test(field) || keeps(schema, inner)),
    );
  return rule({ name, operand, isFor: isDocument, holds });
};

const additionalProperties: Compile = (operand, name, schema) => {
  const inner = typeof operand === 'boolean' ? null : compileSchema(operand);
  if (operand === true) return null;
  const named = new Set(isDocument(schema.properties) ? Object.keys(schema.properties) : []);
  const patterns = Object.keys(isDocument(schema.patternProperties) ? schema.patternProperties : {}).map(
    (each) => compileRegex(new BSONRegExp(each, '')),
  );
  const wrong = (value: Document) =>
    Object.keys(value).filter((field) => {
      if (named.has(field) || patterns.some((test) => test(field))) return false;
      return inner === null || !keeps(inner, value[field]);
    });
  return rule({
    name,
    operand,
    isFor: isDocument,
    holds: (value: Document) => wrong(value).length === 0,
    details: (value: Document) => ({ additionalProperties: wrong(value) }),
  });
};

const dependencies: Compile = (operand, name) => {
  if (!isDocument(operand)) throw wrongType(name, 'an object');
  const needs = Object.entries(operand).map(([field, needed]) => {
    const schema = Array.isArray(needed) ? [required(needed, 'required', {}) as Rule] : compileSchema(needed);
    return [field, schema] as const;
  });
  const holds = (value: Document) =>
    needs.every(([field, schema]) => !Object.hasOwn(value, field) || keeps(schema, value));
  return rule({ name, operand, isFor: isDocument, holds });
};

const items: Compile = (operand, name) => {
  const schemas = Array.isArray(operand) ? operand.map(compileSchema) : null;
  const each = schemas === null ? compileSchema(operand) : null;
  const holds = (list: unknown[]) => list.every((value, i) => keeps(each ?? schemas?.[i] ?? [], value));
  return rule({ name, operand, reason: 'At least one item did not match', isFor: isList, holds });
};

const additionalItems: Compile = (operand, name, { items: first }) => {
  const inner = typeof operand === 'boolean' ? null : compileSchema(operand);
  if (operand === true || !Array.isArray(first)) return null;
  const holds = (list: unknown[]) =>
    list.slice(first.length).every((value) => inner !== null && keeps(inner, value));
  return rule({ name, operand, reason: 'found additional items', isFor: isList, holds });
};

const annotation: Compile = (operand, name) => {
  if (typeof operand !== 'string') throw wrongType(name, 'a string');
  return null;
};

const KEYWORDS: Readonly<Record<string, Compile>> = {
  bsonType: (operand, name) => types(readTypes(operand), operand, name),
  type: jsonTypes,
  enum: oneOfValues,
  minimum: bound(1),
  maximum: bound(-1),
  exclusiveMinimum: exclusive,
  exclusiveMaximum: exclusive,
  multipleOf,
  minLength: size('Length', 1),
  maxLength: size('Length', -1),
  pattern,
  minItems: size('Items', 1),
  maxItems: size('Items', -1),
  uniqueItems,
  items,
  additionalItems,
  minProperties: size('Properties', 1),
  maxProperties: size('Properties', -1),
  required,
  properties,
  patternProperties,
  additionalProperties,
  dependencies,
  allOf: several((kept, all) => kept === all),
  anyOf: several((kept) => kept > 0),
  oneOf: several((kept) => kept === 1),
  not,
  title: annotation,
  description: annotation,
};
