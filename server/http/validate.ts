/**
 * Validates the input of a call against its schemas. Unknown members and parameters are never
 * stored (contract §1). PATCH calls and administrators' calls refuse them. Other calls refuse those
 * that resemble a known one, and list the rest in the header `Warning: 299 - "…"`: typing errors
 * are reported, and programs that send more still work.
 */
import type { FastifyRequest } from 'fastify';
// typebox/compile also converts values, which is not needed here: it loads 140 more files at every
// start.
import { Compile } from 'typebox/schema';
import { didYouMean } from '../config/did-you-mean.ts';
import { AppError, assertFields, type ErrorCode, type FieldProblem } from '../platform/errors.ts';
import type { TSchema } from '../platform/json/json-schema.ts';
import { isOfChoice, ruleWords, type SchemaError } from './docs/rule-words.ts';
import type { Route } from './route.ts';

/** `hasRefused`: a text was already refused, so the value cannot match. */
type Check = (value: unknown, hasRefused?: boolean) => unknown;
type Members = Record<string, never>;
type Validator = ReturnType<typeof Compile>;

const accept: Check = (value) => value;

/** Throws AppError with `fields` for members that break a rule beyond their schema. */
export type MemberRules = (members: Readonly<Members>) => void;

/**
 * Validates a JSON body. Unknown members are accepted and must be ignored by the handler. If the
 * body does not match the schema, `rules` gets the members that do, so that all wrong fields are
 * reported at once; a matching body is left to the domain, which has the same rules.
 */
export function bodyCheck(schema: TSchema | undefined, rules?: MemberRules): Check {
  if (schema === undefined) return accept;
  let validator: Validator | undefined;
  const sort = memberSorter(schema);
  return (value, hasRefused = false) => {
    validator ??= Compile(schema); // not at the start, where all would take 20 ms
    // A route whose members are all optional may be called without a body.
    const body = value === undefined ? {} : value;
    if (validator.Check(body) && !hasRefused) return body;
    if (typeof body !== 'object' || body === null || Array.isArray(body)) {
      throw refusal('invalid_request', [{ field: 'body', message: 'must be a JSON object, in { }' }]);
    }
    const { sound, problems } = sort(body as Members);
    const broken = rules && brokenRules(rules, sound);
    throw refusal(broken?.code ?? 'invalid_request', [...(broken?.fields ?? []), ...problems]);
  };
}

/** Validates query or path parameters, which arrive as text: integers and booleans are parsed first. */
export function textCheck(schema: TSchema | undefined): Check {
  if (schema === undefined) return accept;
  let validator: Validator | undefined;
  const sort = memberSorter(schema);
  const kinds = Object.entries(propertiesOf(schema) as Record<string, { type?: string }>);
  return (value) => {
    const given = value as Record<string, unknown>;
    const read: Record<string, unknown> = {};
    for (const [name, { type }] of kinds) {
      if (given[name] !== undefined) read[name] = fromText(given[name], type);
    }
    validator ??= Compile(schema);
    if (!validator.Check(read)) throw refusal('invalid_request', sort(read as Members).problems);
    return read;
  };
}

/** Returns the result of `check`; adds `refused` to its errors, one per field. */
export function withRefused<T>(refused: readonly FieldProblem[], check: () => T): T {
  if (refused.length === 0) return check();
  let found: readonly FieldProblem[] = [];
  let code: ErrorCode = 'invalid_request';
  try {
    check();
  } catch (error) {
    if (!(error instanceof AppError) || error.fields === undefined) throw error;
    found = error.fields;
    code = error.code;
  }
  const isNew = ({ field }: FieldProblem) => !found.some((known) => known.field === field);
  throw refusal(code, [...found, ...refused.filter(isNew)]);
}

function fromText(value: unknown, type: string | undefined): unknown {
  if (type === 'integer' && typeof value === 'string' && /^-?\d{1,15}$/.test(value)) return Number(value);
  if (type === 'boolean' && (value === 'true' || value === 'false')) return value === 'true';
  return value;
}

function propertiesOf(schema: TSchema): Readonly<Record<string, TSchema>> {
  return (schema as { properties?: Record<string, TSchema> }).properties ?? {};
}

interface Member {
  readonly schema: TSchema;
  readonly validator: Validator;
}

/**
 * Sorts the members of a value that does not match the schema. Each is checked by itself, because a
 * validator of the whole stops after eight problems. The work grows with the schema, not with the
 * input.
 */
function memberSorter(schema: TSchema) {
  let members: [string, Member][] | undefined;
  const { required = [] } = schema as { required?: readonly string[] };
  return (value: Members) => {
    members ??= Object.entries(propertiesOf(schema)).map(([name, each]) => [
      name,
      { schema: each, validator: Compile(each) },
    ]);
    const problems: FieldProblem[] = [];
    const sound: Members = {};
    for (const [name, member] of members) {
      if (!Object.hasOwn(value, name)) {
        if (required.includes(name)) problems.push({ field: name, message: 'is required' });
        continue;
      }
      const own = problemsOf(name, value[name], member);
      if (own.length === 0) sound[name] = value[name] as never;
      problems.push(...own);
    }
    return { sound, problems };
  };
}

/** At most the first eight. Items of a too long array are not checked: that could take seconds. */
function problemsOf(name: string, value: unknown, { schema, validator }: Member): FieldProblem[] {
  const { maxItems = Number.POSITIVE_INFINITY } = schema as { maxItems?: number };
  if (Array.isArray(value) && value.length > maxItems) {
    return [{ field: name, message: `must not have more than ${maxItems} items` }];
  }
  if (validator.Check(value)) return [];
  const problems: FieldProblem[] = [];
  const errors: readonly SchemaError[] = validator.Errors(value)[1];
  for (const error of errors.filter((each) => !isOfChoice(each, errors))) {
    for (const { path, message } of describeError(error, schema, value)) {
      const field = [name, ...path].join('.');
      if (!problems.some((known) => known.field === field)) problems.push({ field, message });
    }
  }
  return problems;
}

function describeError(error: SchemaError, schema: TSchema, value: unknown) {
  const path = error.instancePath.split('/').slice(1);
  if (error.keyword !== 'required') return [{ path, message: ruleWords(error, schema, value) }];
  const { requiredProperties } = error.params as { requiredProperties: readonly string[] };
  return requiredProperties.map((name) => ({ path: [...path, name], message: 'is required' }));
}

function brokenRules(rules: MemberRules, members: Members): AppError | undefined {
  try {
    rules(members);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  return undefined;
}

function refusal(code: ErrorCode, fields: readonly FieldProblem[]): AppError {
  const [first = { field: 'body', message: 'is invalid' }] = fields;
  const more = fields.length > 1 ? ` (and ${fields.length - 1} more)` : '';
  return new AppError(code, `${first.field}: ${first.message}${more}`, { fields });
}

/** Maximum unknown names reported or refused per request. */
const MAX_REPORTED = 5;
const NAME_LENGTH = 64;
/** Maximum members checked: limits the work, however much was sent. */
const MAX_CHECKED = 100;

/** Checks path and body of a request, once its body is read; returns the problems to refuse. */
export function unknownMembers(route: Route): (request: FastifyRequest) => FieldProblem[] {
  const { query = NO_MEMBERS, body = NO_MEMBERS, consumes, produces } = route;
  const isStrict =
    route.method === 'PATCH' || route.permission === 'admin' || route.permission === 'admin:read';
  return (request) => {
    const unknown = unknownIn(request.query, query, { kind: 'parameter', path: '' });
    if (consumes !== 'multipart')
      unknown.push(...unknownIn(request.body, body, { kind: 'member', path: '' }));
    // Nearly every request has no unknown names.
    if (unknown.length === 0) return [];
    const isRefused = ({ meant }: Unknown) => isStrict || meant !== undefined;
    // Binary responses have headers of their own.
    if (produces !== 'bytes')
      warn(
        request,
        unknown.filter((each) => !isRefused(each)),
      );
    return unknown.filter(isRefused).slice(0, MAX_REPORTED).map(problemOf);
  };
}

/** Like unknownMembers(), for the fields of a form. Throws `invalid_request`. */
export function unknownFields(request: FastifyRequest, names: Iterable<string>, form: TSchema): void {
  const given = Object.fromEntries([...names].map((name) => [name, '']));
  const unknown = unknownIn(given, form, { kind: 'field', path: '' });
  assertFields(unknown.filter(({ meant }) => meant !== undefined).map(problemOf));
  warn(request, unknown);
}

interface Unknown {
  readonly kind: 'member' | 'parameter' | 'field';
  /** `quotas.max_vms`: with its parents. */
  readonly name: string;
  /** The known name that the unknown one resembles. */
  readonly meant: string | undefined;
}

interface Shape {
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly items?: TSchema;
}

const NO_MEMBERS: TSchema = {};

interface Parent {
  readonly kind: Unknown['kind'];
  /** `quotas.`: the parents. */
  readonly path: string;
}

/** An object without declared members, such as metadata, may have any. */
function unknownIn(value: unknown, schema: TSchema, { kind, path }: Parent): Unknown[] {
  const { properties, items } = schema as Shape;
  if (Array.isArray(value)) {
    if (items === undefined) return [];
    return value
      .slice(0, MAX_CHECKED)
      .flatMap((each, i) => unknownIn(each, items, { kind, path: `${path}${i}.` }))
      .slice(0, MAX_CHECKED);
  }
  if (typeof value !== 'object' || value === null) return [];
  if (properties === undefined && path !== '') return [];
  const known = properties ?? {};
  const found: Unknown[] = [];
  for (const [name, member] of Object.entries(value)) {
    if (found.length >= MAX_CHECKED) break;
    const own = Object.hasOwn(known, name) ? known[name] : undefined;
    if (own !== undefined) found.push(...unknownIn(member, own, { kind, path: `${path}${name}.` }));
    else found.push({ kind, name: path + name, meant: didYouMean(name, Object.keys(known)) });
  }
  return found;
}

function problemOf({ kind, name, meant }: Unknown): FieldProblem {
  const guess = meant === undefined ? '' : `; did you mean ${meant}?`;
  return { field: name.slice(0, NAME_LENGTH), message: `is not a ${kind} of this call${guess}` };
}

function warn(request: FastifyRequest, unknown: readonly Unknown[]): void {
  if (unknown.length === 0) return;
  const warnings = unknown
    .slice(0, MAX_REPORTED)
    .map(({ kind, name }) => `299 - "Unknown ${kind} ${printable(name)} is ignored"`);
  const { responseHeaders } = request;
  responseHeaders.warning = [responseHeaders.warning, ...warnings].filter(Boolean).join(', ');
}

/** A name as it may appear in a quoted header value. */
function printable(name: string): string {
  return name.slice(0, NAME_LENGTH).replace(/[^\x20-\x7e]|["\\,]/g, '?');
}
