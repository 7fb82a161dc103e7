/**
 * The one way an endpoint is declared. From this come the validation, the handler's types, openapi.json,
 * the docs page and the test that walks every permission.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Call, Permission } from '../calls/principal.ts';
import type { ErrorCode } from '../platform/errors.ts';
import type { Static, TSchema } from '../platform/json-schema.ts';
import type { MemberRules } from './validate.ts';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export interface RouteInput<P, Q, B> extends Call {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /**
   * Multipart routes call this before their commit with what stands for all they read, as something JSON can
   * say, so that a retry under the same Idempotency-Key is recognised. JSON routes are identified by their
   * body.
   */
  readonly identify: (content: unknown) => void;
  /** For streams, headers and cookies; rules do not belong here. */
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

interface RouteSpec<P extends TSchema, Q extends TSchema, B extends TSchema> {
  readonly method: Method;
  /** OpenAPI form: `/api/buckets/{name}`. */
  readonly path: string;
  /** Unique lower-camel name: the operationId. */
  readonly name: string;
  readonly tag:
    | 'accounts'
    | 'storage'
    | 'compute'
    | 'databases'
    | 'recovery'
    | 'billing'
    | 'webhooks'
    | 'system'
    | 'admin';
  readonly summary: string;
  readonly description?: string;
  readonly permission: Permission;
  /** For a public route: checks a credential that is sent anyway, so that the handler knows its holder. */
  readonly knowsCaller?: boolean;
  readonly params?: P;
  readonly query?: Q;
  /** JSON body. */
  readonly body?: B;
  /** The bound on a JSON body; default: JSON_MAX_BYTES. */
  readonly maxBodyBytes?: number;
  /** Rules of the domain for single members of the body: see bodyCheck. */
  readonly rules?: (members: Partial<Static<B>>) => void;
  /** `multipart`: the handler reads the form from `request.raw`; `body` then only documents its fields. */
  readonly consumes?: 'json' | 'multipart';
  /**
   * Status → schema. The first status is the one a returned value is sent with.
   * `bytes`: the handler writes to `reply` itself; `list`: it returns an async iterable of entries,
   * streamed as a JSON array.
   */
  readonly responses: Readonly<Record<number, TSchema>>;
  readonly produces?: 'json' | 'bytes' | 'list' | 'html' | 'text';
  /**
   * A caller without a key is let through when this says so, whatever cookie there is; the handler then
   * checks the signed link.
   */
  readonly acceptsLink?: (request: FastifyRequest) => boolean;
  /**
   * A retry does no harm, so an Idempotency-Key has no meaning here. For calls whose effect is
   * not in the body of the response.
   */
  readonly isRepeatable?: boolean;
  /** Answered also on the reserved connections, when all others are taken. */
  readonly usesReserve?: boolean;
  /** The call ends the caller's credential, so nobody could look an operation up afterwards. */
  readonly endsCredential?: boolean;
  /** Beyond those every route may give (see COMMON_ERRORS in openapi.ts). */
  readonly errors?: readonly ErrorCode[];
  readonly handler: (input: RouteInput<Static<P>, Static<Q>, Static<B>>) => unknown;
}

/** A declared route with its types erased, as the server mounts it. */
export interface Route extends Omit<RouteSpec<TSchema, TSchema, TSchema>, 'handler' | 'rules'> {
  readonly rules?: MemberRules;
  // biome-ignore lint/suspicious/noExplicitAny: the schemas guarantee what the type cannot say here
  readonly handler: (input: RouteInput<any, any, any>) => unknown;
}

/** Declares an endpoint. */
export function defineRoute<P extends TSchema, Q extends TSchema, B extends TSchema>(
  spec: RouteSpec<P, Q, B>,
): Route {
  return spec as unknown as Route;
}

/** The status that a returned value is sent with. */
export function statusOf({ responses }: Route): number {
  return Number(Object.keys(responses)[0]);
}

/** True for what has an effect that must not happen twice. */
export function takesIdempotencyKey({ method, isRepeatable }: Route): boolean {
  return method !== 'GET' && isRepeatable !== true;
}

/**
 * True for what may be answered before it has ended (`Prefer: respond-async`). What is read as a stream, and
 * what nobody in particular asks for, is not.
 */
export function mayRespondAsync(route: Route): boolean {
  const { method, permission, consumes = 'json', produces = 'json', endsCredential = false } = route;
  const isJson = consumes === 'json' && produces === 'json';
  return method !== 'GET' && permission !== 'public' && isJson && !endsCredential;
}

export interface RouteResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** The body as it is sent: JSON ends with a line end, so that a terminal's prompt does not stick to it. */
export function lineOf({ contentType, body }: RouteResponse): string {
  return /^application\/(?:problem\+)?json\b/.test(contentType) ? `${body}\n` : body;
}
