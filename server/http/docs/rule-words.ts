/** Describes broken schema rules in plain words; never shows a regular expression. */
import { didYouMean } from '../../config/did-you-mean.ts';
import type { TSchema } from '../../platform/json/json-schema.ts';
import { plural } from '../../platform/plural.ts';

export interface SchemaError {
  readonly keyword: string;
  /** Location in the schema, `#/items`. */
  readonly schemaPath: string;
  readonly instancePath: string;
  readonly params: object;
  readonly message: string;
}

/** The keywords of a schema that the descriptions use. */
interface Rules {
  readonly type?: string;
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Rules[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly multipleOf?: number;
  /** Describes `pattern` in words. */
  readonly 'x-rule'?: string;
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'a string',
  integer: 'a whole number',
  number: 'a number',
  boolean: 'true or false',
  array: 'a list, in [ ]',
  object: 'an object, in { }',
  null: 'null',
};

/** The violated rule as "must …"; `schema` is the schema of `error`, and `value` was checked against it. */
export function ruleWords(error: SchemaError, schema: TSchema, value?: unknown): string {
  const rules = partOf(schema, error.schemaPath);
  const { minimum: least, maximum: most, minLength: fewest = 0, maxLength: longest } = rules;
  switch (error.keyword) {
    case 'type':
    case 'const':
    case 'enum':
    case 'anyOf':
      return `must be ${choiceOf(kindsOf(rules))}${guessOf(valueAt(value, error.instancePath), rules)}`;
    case 'pattern':
      return rules['x-rule'] ?? 'has characters that are not allowed';
    case 'minimum':
    case 'maximum':
      if (least !== undefined && most !== undefined) return `must be from ${least} to ${most}`;
      return least === undefined ? `must be ${most} or less` : `must be ${least} or more`;
    case 'minLength':
    case 'maxLength':
      if (longest === undefined) return `must have at least ${plural(fewest, 'character')}`;
      return `must have ${fewest === 0 ? 'at most' : `${fewest} to`} ${plural(longest, 'character')}`;
    case 'minItems':
      return `must have at least ${plural(rules.minItems ?? 1, 'item')}`;
    case 'multipleOf':
      return `must be a multiple of ${rules.multipleOf}`;
    default:
      return error.message;
  }
}

/** True for errors of single branches of a choice; the error of the choice itself describes them better. */
export function isOfChoice(error: SchemaError, errors: readonly SchemaError[]): boolean {
  if (!['type', 'const', 'enum'].includes(error.keyword)) return false;
  return errors.some(
    ({ keyword, instancePath, schemaPath }) =>
      keyword === 'anyOf' &&
      instancePath === error.instancePath &&
      error.schemaPath.startsWith(`${schemaPath}/anyOf/`),
  );
}

function choiceOf(kinds: readonly string[]): string {
  return kinds.length > 3 ? `one of ${kinds.join(', ')}` : kinds.join(' or ');
}

/** `; did you mean storage:read?`, or nothing. */
function guessOf(given: unknown, rules: Rules): string {
  const names = namesOf(rules);
  const meant = typeof given === 'string' && names.length > 1 ? didYouMean(given, names) : undefined;
  return meant === undefined ? '' : `; did you mean ${meant}?`;
}

function namesOf({ const: only, enum: choices = [], anyOf = [] }: Rules): string[] {
  return [only, ...choices, ...anyOf.flatMap(namesOf)].filter((name) => typeof name === 'string');
}

function valueAt(value: unknown, path: string): unknown {
  let part = value;
  for (const step of path.split('/').slice(1)) {
    if (typeof part !== 'object' || part === null || !Object.hasOwn(part, step)) return undefined;
    part = (part as Record<string, unknown>)[step];
  }
  return part;
}

function partOf(schema: TSchema, path: string): Rules {
  let part = schema as unknown;
  for (const step of path.split('/').slice(1)) part = (part as Record<string, unknown> | undefined)?.[step];
  return (part ?? {}) as Rules;
}

function kindsOf({ type, const: only, enum: choices, anyOf }: Rules): string[] {
  if (anyOf !== undefined) return [...new Set(anyOf.flatMap(kindsOf))];
  if (choices !== undefined) return choices.map((choice) => String(choice));
  if (only !== undefined) return [String(only)];
  return [TYPES[type ?? ''] ?? 'something else'];
}
