/**
 * Members and parameters that a call does not know are ignored (contract §1), and told in the header
 * `Warning: 299 - "…"`: whoever mistyped one finds out, and no program that sends more is hurt.
 */
import type { FastifyRequest } from 'fastify';
import { didYouMean } from '../config/did-you-mean.ts';
import type { TSchema } from '../platform/json-schema.ts';
import type { Route } from './route.ts';

/** At most so many names of one request are told. */
const TOLD = 5;
const NAME_LENGTH = 64;

/** Looks at path and body of a request, once its body is read. */
export function unknownMembers({ query, body, consumes }: Route): (request: FastifyRequest) => void {
  const parameters = namesOf(query);
  const members = namesOf(body);
  return (request) => {
    warn(request, 'parameter', { given: Object.keys(request.query as object), known: parameters });
    if (consumes === 'multipart' || !isObject(request.body)) return;
    warn(request, 'member', { given: Object.keys(request.body), known: members });
  };
}

/** The same of a form, for those who read one. */
export function unknownFields(request: FastifyRequest, names: Iterable<string>, form: TSchema): void {
  warn(request, 'field', { given: [...names], known: namesOf(form) });
}

interface Names {
  readonly given: readonly string[];
  readonly known: readonly string[];
}

function warn(request: FastifyRequest, kind: string, { given, known }: Names): void {
  // Nearly every request has nothing to tell.
  if (given.every((name) => known.includes(name))) return;
  const told = given.filter((name) => !known.includes(name)).slice(0, TOLD);
  const warnings = told.map((name) => {
    const meant = didYouMean(name, known);
    const guess = meant === undefined ? '' : `; did you mean ${meant}?`;
    return `299 - "Unknown ${kind} ${printable(name)} is ignored${guess}"`;
  });
  const { responseHeaders } = request;
  responseHeaders.warning = [responseHeaders.warning, ...warnings].filter(Boolean).join(', ');
}

/** As a header may hold it between quotes. */
function printable(name: string): string {
  return name.slice(0, NAME_LENGTH).replace(/[^\x20-\x7e]|["\\,]/g, '?');
}

function namesOf(schema: TSchema | undefined): readonly string[] {
  return Object.keys((schema as { properties?: object } | undefined)?.properties ?? {});
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
