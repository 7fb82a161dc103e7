/**
 * The declaration of an endpoint. Validation, the handler's types, openapi.json, the API reference and the
 * test of every permission are derived from it.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AuditKind, AuditRule } from '../calls/audit.ts';
import type { Call, Permission } from '../calls/principal.ts';
import { didYouMean } from '../config/did-you-mean.ts';
import { AppError, type ErrorCode } from '../platform/errors.ts';
import type { JsonText } from '../platform/json/json.ts';
import { type Static, type TSchema, Type } from '../platform/json/json-schema.ts';
import type { MemberRules } from './validate.ts';

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

export interface RouteInput<P, Q, B> extends Call {
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  /**
   * Multipart routes call this before their commit with a JSON value that represents all they read,
   * so that a retry under the same Idempotency-Key is recognised. JSON routes are identified by
   * their body.
   */
  readonly identify: (content: unknown) => void;
  /** For streams, headers and cookies only. */
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** True for a session that has to give its password before it is shown a secret. */
  readonly isSecretHidden: boolean;
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
  /** Access keys are refused: it needs a session or the account's current key. The handler checks that. */
  readonly needsOwner?: true;
  /** For a public route: checks an optional credential, so that the handler knows its holder. */
  readonly knowsCaller?: boolean;
  readonly params?: P;
  readonly query?: Q;
  /** JSON body. */
  readonly body?: B;
  /** The limit of a JSON body; default: JSON_MAX_BYTES. */
  readonly maxBodyBytes?: number;
  /** Domain rules for single members of the body: see bodyCheck. */
  readonly rules?: (members: Partial<Static<B>>) => void;
  /** `multipart`: the handler reads the form from `request.raw`; `body` then only documents its fields. */
  readonly consumes?: 'json' | 'multipart';
  /**
   * Status → schema. The first status is that of a returned value. `bytes`: the handler writes to `reply`
   * itself; `list`: it returns an async iterable of entries, streamed as a JSON array.
   */
  readonly responses: Readonly<Record<number, TSchema>>;
  readonly produces?: 'json' | 'bytes' | 'list' | 'html' | 'text';
  /**
   * Accepts a call without a key if it returns true, whatever cookie was sent; the handler then
   * checks the signed link.
   */
  readonly acceptsLink?: (request: FastifyRequest) => boolean;
  /**
   * A read that browsers navigate to, so it has no custom header: accepts `?ticket=` of POST
   * /api/account/tickets. Its query needs the member TicketField.
   */
  readonly acceptsTicket?: boolean;
  /**
   * A retry is harmless, so Idempotency-Key is ignored. For calls whose effect is not in the
   * response body.
   */
  readonly isRepeatable?: boolean;
  /**
   * The call only reads, always or with this body. Its response is not stored: under its
   * Idempotency-Key it runs again, and it never becomes an operation.
   */
  readonly changesNothing?: true | ((body: Static<B>) => boolean);
  /** Texts of the body may contain U+0000: they go to a tenant's database, never to the metadata. */
  readonly takesNul?: boolean;
  /**
   * Which node of a cluster answers. `host`: the node with the machines and databases, else the
   * call is refused; `host-or-any`: any node while that one is down, from rows alone; default: any
   * node.
   */
  readonly livesOn?: 'host' | 'host-or-any';
  /** Also served on the reserved connections, when all others are taken. */
  readonly usesReserve?: boolean;
  /** The operation can be cancelled: the handler heeds `work.signal`. */
  readonly isCancellable?: boolean;
  /** The answer contains a secret stored nowhere, so the call is never an operation. */
  readonly isKeptNowhere?: boolean;
  /** The call ends the caller's credential, so an operation could not be read afterwards. */
  readonly endsCredential?: boolean;
  /**
   * Its entries in the audit log; default: every call but a read is logged as a change. See
   * calls/audit.ts.
   */
  readonly audit?: AuditKind | AuditRule;
  /**
   * For `audit: 'secret'`: what a session gets whose password was given over 15 minutes ago. Default:
   * `password_required`. `hidden`: the answer without the secret, which the handler leaves out. `new`: all,
   * since the secret opens only what the call itself makes. See asksForPassword().
   */
  readonly oldSession?: 'hidden' | 'new';
  /** Errors besides those of every route (see COMMON_ERRORS in openapi.ts). */
  readonly errors?: readonly ErrorCode[];
  readonly handler: (input: RouteInput<Static<P>, Static<Q>, Static<B>>) => unknown;
}

/** Member `ticket` of the query of a route that accepts one. */
export const TicketField = Type.Optional(
  Type.String({
    description: 'Ticket from POST /api/account/tickets for this path and query, instead of a key',
  }),
);

/** A declared route with its types erased, as the server mounts it. */
export interface Route
  extends Omit<RouteSpec<TSchema, TSchema, TSchema>, 'handler' | 'rules' | 'changesNothing'> {
  readonly rules?: MemberRules;
  // biome-ignore lint/suspicious/noExplicitAny: the schemas guarantee what the type cannot say here
  readonly changesNothing?: true | ((body: any) => boolean);
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly handler: (input: RouteInput<any, any, any>) => unknown;
}

/** Declares an endpoint. */
export function defineRoute<P extends TSchema, Q extends TSchema, B extends TSchema>(
  spec: RouteSpec<P, Q, B>,
): Route {
  return spec as unknown as Route;
}

const showsSecret = ({ audit }: Route) => (typeof audit === 'string' ? audit : audit?.kind) === 'secret';

/**
 * Whether a session has to give its password again: for calls that show or replace a secret, or make one that
 * outlives the session. The only place that decides it by the route.
 */
export function asksForPassword(route: Route): 'refuse' | 'hide' | null {
  if (!showsSecret(route) || route.permission === 'public' || route.oldSession === 'new') return null;
  return route.oldSession === 'hidden' ? 'hide' : 'refuse';
}

/** The names of the calls whose answers, kept as operations, contain a secret. */
export function secretCalls(routes: readonly Route[]): ReadonlySet<string> {
  return new Set(routes.filter(showsSecret).map(({ name }) => name));
}

/** The status of a returned value. */
export function statusOf({ responses }: Route): number {
  return Number(Object.keys(responses)[0]);
}

/** True for calls with an effect that must not happen twice. */
export function takesIdempotencyKey({ method, isRepeatable }: Route): boolean {
  return method !== 'GET' && isRepeatable !== true;
}

/**
 * True for calls that may respond before they have ended (`Prefer: respond-async`). Streams and public calls
 * may not.
 */
export function mayRespondAsync(route: Route): boolean {
  const { method, permission, consumes = 'json', produces = 'json', endsCredential = false } = route;
  const isJson = consumes === 'json' && produces === 'json';
  const mayChange = route.changesNothing !== true;
  const isKept = route.isKeptNowhere !== true && !endsCredential;
  return method !== 'GET' && permission !== 'public' && isJson && mayChange && isKept;
}

export interface RouteResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string | JsonText;
}

export const JSON_TYPE = 'application/json; charset=utf-8';

/** `not_found`, with the path that was probably meant; `method_not_allowed` if another method exists. */
export function unknownPath(routes: readonly Route[], method: string, url: string): AppError {
  const path = url.split('?', 1)[0] ?? '';
  const allowed = new Set<string>();
  for (const route of routes) {
    if (fill(route.path, path.split('/')) !== path) continue;
    allowed.add(route.method);
    if (route.method === 'GET') allowed.add('HEAD');
  }
  if (allowed.size > 0) {
    const list = [...allowed].join(', ');
    return new AppError('method_not_allowed', `${method} is not allowed here; allowed: ${list}`, {
      headers: { allow: list },
    });
  }
  const meant = meantPath(routes, path);
  const hint = meant === undefined ? 'See all calls at /api/docs' : `Did you mean ${meant}?`;
  return new AppError('not_found', `No resource has the path ${path}`, { hint });
}

/** Empty segments and a version are not part of any path here, and `/api` is part of most. */
function meantPath(routes: readonly Route[], path: string): string | undefined {
  const given = path.split('/').filter((segment) => segment !== '' && !/^v\d$/.test(segment));
  const spellings = [given, given[0] === 'api' ? given.slice(1) : ['api', ...given]];
  for (const segments of spellings) {
    const candidates = routes.flatMap((route) => fill(route.path, ['', ...segments]) ?? []);
    const meant = didYouMean(`/${segments.join('/')}`, candidates);
    if (meant !== undefined) return meant;
  }
  return undefined;
}

/** The route's path filled with `segments`; undefined if the lengths differ. */
function fill(routePath: string, segments: readonly string[]): string | undefined {
  const pattern = routePath.split('/');
  if (pattern.length !== segments.length) return undefined;
  const filled = pattern.map((part, index) => (part.startsWith('{') ? segments[index] : part));
  return filled.slice(1).includes('') ? undefined : filled.join('/');
}

/** Whether no route has the URL's prefix, so that a page may be shown: never for `/api/x`. */
export function freePaths(routes: readonly Route[]): (url: string) => boolean {
  const taken = new Set(routes.map(({ path }) => firstSegment(path)).filter((segment) => segment !== ''));
  return (url) => !taken.has(firstSegment(url));
}

function firstSegment(url: string): string {
  return /^\/*([^/?]*)/.exec(url)?.[1] ?? '';
}
