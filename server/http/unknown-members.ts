/**
 * Members and parameters that a call does not know are never stored (contract §1). A PATCH and a call of
 * administrators refuse them. Other calls refuse those that resemble one that they know, and tell the rest in
 * the header `Warning: 299 - "…"`: whoever mistyped one finds out, and no program that sends more is hurt.
 */
import type { FastifyRequest } from 'fastify';
import { didYouMean } from '../config/did-you-mean.ts';
import { assertFields, type FieldProblem } from '../platform/errors.ts';
import type { TSchema } from '../platform/json-schema.ts';
import type { Route } from './route.ts';

/** At most so many names of one request are told or refused. */
const TOLD = 5;
const NAME_LENGTH = 64;
/** So many are looked at: the work goes with what a person writes, not with what was sent. */
const LOOKED_INTO = 100;

/** Looks at path and body of a request, once its body is read; gives what is to be refused. */
export function unknownMembers(route: Route): (request: FastifyRequest) => FieldProblem[] {
  const { query = NO_MEMBERS, body = NO_MEMBERS, consumes, produces } = route;
  const isStrict = route.method === 'PATCH' || route.permission === 'admin';
  return (request) => {
    const unknown = unknownIn(request.query, query, { kind: 'parameter', path: '' });
    if (consumes !== 'multipart')
      unknown.push(...unknownIn(request.body, body, { kind: 'member', path: '' }));
    // Nearly every request has nothing to tell.
    if (unknown.length === 0) return [];
    const isRefused = ({ meant }: Unknown) => isStrict || meant !== undefined;
    // Bytes go out with a head of their own.
    if (produces !== 'bytes')
      warn(
        request,
        unknown.filter((each) => !isRefused(each)),
      );
    return unknown.filter(isRefused).slice(0, TOLD).map(problemOf);
  };
}

/** The same of a form, for those who read one. Throws `invalid_request`. */
export function unknownFields(request: FastifyRequest, names: Iterable<string>, form: TSchema): void {
  const given = Object.fromEntries([...names].map((name) => [name, '']));
  const unknown = unknownIn(given, form, { kind: 'field', path: '' });
  assertFields(unknown.filter(({ meant }) => meant !== undefined).map(problemOf));
  warn(request, unknown);
}

interface Unknown {
  readonly kind: 'member' | 'parameter' | 'field';
  /** `quotas.max_vms`: with the members that it is in. */
  readonly name: string;
  /** The known one that it resembles. */
  readonly meant: string | undefined;
}

interface Shape {
  readonly properties?: Readonly<Record<string, TSchema>>;
  readonly items?: TSchema;
}

const NO_MEMBERS: TSchema = {};

interface Place {
  readonly kind: Unknown['kind'];
  /** `quotas.`: the members that it is in. */
  readonly path: string;
}

/** What has no list of members, as metadata of an object, may have any. */
function unknownIn(value: unknown, schema: TSchema, { kind, path }: Place): Unknown[] {
  const { properties, items } = schema as Shape;
  if (Array.isArray(value)) {
    if (items === undefined) return [];
    return value
      .slice(0, LOOKED_INTO)
      .flatMap((each, i) => unknownIn(each, items, { kind, path: `${path}${i}.` }))
      .slice(0, LOOKED_INTO);
  }
  if (typeof value !== 'object' || value === null) return [];
  if (properties === undefined && path !== '') return [];
  const known = properties ?? {};
  const found: Unknown[] = [];
  for (const [name, member] of Object.entries(value)) {
    if (found.length >= LOOKED_INTO) break;
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
    .slice(0, TOLD)
    .map(({ kind, name }) => `299 - "Unknown ${kind} ${printable(name)} is ignored"`);
  const { responseHeaders } = request;
  responseHeaders.warning = [responseHeaders.warning, ...warnings].filter(Boolean).join(', ');
}

/** As a header may hold it between quotes. */
function printable(name: string): string {
  return name.slice(0, NAME_LENGTH).replace(/[^\x20-\x7e]|["\\,]/g, '?');
}
