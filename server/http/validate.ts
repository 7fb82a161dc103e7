/** Checks requests against TypeBox schemas, strictly: no coercion of JSON, all problems at once. */
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { AppError, type FieldProblem } from '../errors.ts';

type Check = (value: unknown) => unknown;

const accept: Check = (value) => value;

/** Checks a JSON body. Unknown members are let through and must be ignored by the handler. */
export function bodyCheck(schema: TSchema | undefined): Check {
  if (schema === undefined) return accept;
  const validator = Compile(schema);
  return (value) => {
    // Routes whose members are all optional may be called without a body.
    const body = value === undefined ? {} : value;
    if (!validator.Check(body)) throw invalid(validator.Errors(body), 'body');
    return body;
  };
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
    if (!validator.Check(read)) throw invalid(validator.Errors(read), part);
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

function invalid(errors: Iterable<SchemaError>, part: string): AppError {
  const fields: FieldProblem[] = [];
  for (const error of errors) {
    for (const problem of toFields(error, part)) {
      if (!fields.some((known) => known.field === problem.field)) fields.push(problem);
    }
  }
  const first = fields[0] ?? { field: part, message: 'is invalid' };
  const more = fields.length > 1 ? ` (and ${fields.length - 1} more)` : '';
  return new AppError('invalid_request', `${first.field}: ${first.message}${more}`, { fields });
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
