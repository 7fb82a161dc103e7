/** Checks requests against TypeBox schemas, strictly: no coercion of JSON, all problems at once. */
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { AppError, type ErrorCode, type FieldProblem } from '../errors.ts';

type Check = (value: unknown) => unknown;

const accept: Check = (value) => value;

/** Throws AppError with `fields` for members that break a rule beyond their schema. */
export type MemberRules = (members: Readonly<Record<string, never>>) => void;

/**
 * Checks a JSON body. Unknown members are let through and must be ignored by the handler. Of a body that does
 * not fit the schema, `rules` are given the members that do, so that all wrong fields are named at once; one
 * that fits is left to the domain, which has the same rules.
 */
export function bodyCheck(schema: TSchema | undefined, rules?: MemberRules): Check {
  if (schema === undefined) return accept;
  const validator = Compile(schema);
  return (value) => {
    // Routes whose members are all optional may be called without a body.
    const body = value === undefined ? {} : value;
    if (validator.Check(body)) return body;
    const fields = fieldsOf(validator.Errors(body), 'body');
    const broken = rules && brokenRules(rules, soundMembers(body, fields));
    throw refusal(broken?.code ?? 'invalid_request', [...(broken?.fields ?? []), ...fields]);
  };
}

function soundMembers(body: unknown, wrong: readonly FieldProblem[]): Record<string, never> {
  const isWrong = (name: string) => wrong.some(({ field }) => field.split('.', 1)[0] === name);
  if (wrong.some(({ field }) => field === 'body')) return {};
  const members = Object.entries(body as Record<string, never>);
  return Object.fromEntries(members.filter(([name]) => !isWrong(name)));
}

function brokenRules(rules: MemberRules, members: Record<string, never>): AppError | undefined {
  try {
    rules(members);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  return undefined;
}

/** Checks query or path parameters, which arrive as text: integers and booleans are read from it first. */
export function textCheck(schema: TSchema | undefined, part: 'query' | 'path'): Check {
  if (schema === undefined) return accept;
  const validator = Compile(schema);
  const kinds = Object.entries(
    (schema as { properties?: Record<string, { type?: string }> }).properties ?? {},
  );
  return (value) => {
    const given = value as Record<string, unknown>;
    const read: Record<string, unknown> = {};
    for (const [name, { type }] of kinds) {
      if (given[name] !== undefined) read[name] = fromText(given[name], type);
    }
    if (!validator.Check(read)) throw refusal('invalid_request', fieldsOf(validator.Errors(read), part));
    return read;
  };
}

function fromText(value: unknown, type: string | undefined): unknown {
  if (type === 'integer' && typeof value === 'string' && /^-?\d{1,15}$/.test(value)) return Number(value);
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true';
  return value;
}

interface SchemaError {
  keyword: string;
  instancePath: string;
  params: object;
  message: string;
}

function fieldsOf(errors: Iterable<SchemaError>, part: string): FieldProblem[] {
  const fields: FieldProblem[] = [];
  for (const error of errors) {
    for (const problem of toFields(error, part)) {
      if (!fields.some((known) => known.field === problem.field)) fields.push(problem);
    }
  }
  return fields.length > 0 ? fields : [{ field: part, message: 'is invalid' }];
}

function refusal(code: ErrorCode, fields: readonly FieldProblem[]): AppError {
  const [first] = fields;
  const more = fields.length > 1 ? ` (and ${fields.length - 1} more)` : '';
  return new AppError(code, `${first?.field}: ${first?.message}${more}`, { fields });
}

function toFields(error: SchemaError, part: string): FieldProblem[] {
  const path = error.instancePath.slice(1).replaceAll('/', '.');
  const params = error.params as Record<string, unknown>;
  if (error.keyword === 'required') {
    return (params.requiredProperties as string[]).map((name) => ({
      field: path === '' ? name : `${path}.${name}`,
      message: 'is required',
    }));
  }
  return [{ field: path === '' ? part : path, message: error.message }];
}
