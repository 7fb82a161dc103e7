/**
 * Authentication, rate limits and permissions of a request. Credentials are a key in a header, the
 * console's session, a ticket, or the control socket's token; the permission is the route's.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { NOBODY, OPERATOR, type Permission, type Principal, permits } from '../calls/principal.ts';
import type { TicketHolder, Tickets } from '../calls/tickets.ts';
import type { Awaitable } from '../metadata/metadata.ts';
import { AppError, isAppError } from '../platform/errors.ts';
import type { Door } from './exchange.ts';
import { addressKey, type RateLimiter } from './limits/rate-limits.ts';
import { asksForPassword, type Route } from './route.ts';
import { assertOwnPage, type SentSession, sessionIn } from './session.ts';

export interface Authenticates {
  authenticate(credentials: { apiKey?: string; session?: SentSession }): Awaitable<Principal>;
  /** False once the key or session has ended, or the account is suspended or closed. */
  isCurrent(principal: Principal): Awaitable<boolean>;
  /** The key with this id and its account; throws or rejects as `authenticate` does. */
  holderOf(keyId: string): Awaitable<Principal>;
}

/** Asks a session for its password again. See accounts/sign-in/password-checks.ts. */
export interface AsksPassword {
  /** False for a session whose password was given too long ago. */
  isFresh(principal: Principal): Promise<boolean>;
  /** Throws `password_required` unless isFresh. */
  assertFresh(principal: Principal): Promise<void>;
}

/** Control-socket connections that presented the token, which only the operator's own user can read. */
export type ControlSockets = WeakSet<object>;

/** The key of `X-API-Key` or `Authorization: Bearer`, if any. Throws `invalid_api_key` for another scheme. */
function apiKeyOf(request: IncomingMessage): string | undefined {
  const direct = request.headers['x-api-key'];
  if (typeof direct === 'string') return direct;
  const authorization = request.headers.authorization;
  if (authorization === undefined) return undefined;
  const match = /^Bearer +(\S+) *$/i.exec(authorization);
  if (!match) throw new AppError('invalid_api_key', 'The Authorization header must be "Bearer <API key>"');
  return match[1];
}

/** True if the request has a key in a header, valid or not. */
function carriesKey({ headers }: IncomingMessage): boolean {
  return headers['x-api-key'] !== undefined || headers.authorization !== undefined;
}

export interface IdentifyDeps {
  readonly accounts: Pick<Authenticates, 'authenticate'>;
  readonly control: ControlSockets;
  /** For operator requests forwarded by another node. */
  readonly door: Pick<Door, 'forwarded'>;
  /** URL of the API behind a proxy that may change the Host header; empty: the Host header is used. */
  readonly publicUrl: string;
}

/** The caller's Principal; NOBODY if no credential was sent. */
export function identify(
  request: IncomingMessage,
  { accounts, control, door, publicUrl }: IdentifyDeps,
): Awaitable<Principal> {
  if (control.has(request.socket) || door.forwarded(request)?.isOperator === true) return OPERATOR;
  const apiKey = apiKeyOf(request);
  if (apiKey !== undefined) return accounts.authenticate({ apiKey });
  const session = sessionIn(request);
  if (session === undefined) return NOBODY;
  assertOwnPage(request, publicUrl);
  return accounts.authenticate({ session });
}

export interface AdmitDeps extends IdentifyDeps {
  readonly accounts: Authenticates;
  /** Missing: no session is asked for its password. */
  readonly passwords?: AsksPassword;
  /** Missing: tickets are not accepted. */
  readonly tickets?: Pick<Tickets, 'holderOf'>;
  readonly door: Door;
  /** False: the limit applies only to failed credentials, as on the data origin. */
  readonly limitsCalls: boolean;
  /** Additional limits of some routes, by operation name. */
  readonly routeLimiters: ReadonlyMap<string, RateLimiter>;
}

/**
 * Sets the request's principal, takes a token from its rate limits and checks the route's
 * permission. Synchronous if the key is cached. Throws, or rejects with, the refusal.
 */
export function admit(deps: AdmitDeps, route: Route, request: FastifyRequest): Promise<void> | undefined {
  if (route.permission === 'public' && route.knowsCaller !== true) {
    limit(deps, route, request);
    return undefined;
  }
  let found: ReturnType<typeof identify>;
  try {
    found = callerOf(deps, route, request);
  } catch (error) {
    refuse(deps, route, request, error);
    return undefined;
  }
  if (!(found instanceof Promise)) {
    request.principal = found;
    return enter(deps, route, request);
  }
  return found.then(
    (principal) => {
      request.principal = principal;
      return enter(deps, route, request);
    },
    (error) => refuse(deps, route, request, error),
  );
}

/**
 * Throws the error, unless the route is public: a browser that follows a link sends only its
 * cookie, and the metadata may be unreachable. Such requests are treated as anonymous; a wrong key
 * is reported.
 */
// biome-ignore lint/complexity/useMaxParams: as its siblings, and the error
function refuse(deps: AdmitDeps, route: Route, request: FastifyRequest, error: unknown): void {
  limit(deps, route, request);
  const isNobody = !carriesKey(request.raw) || isAppError(error, 'overloaded');
  if (route.permission !== 'public' || !isNobody) throw error;
}

/** A key takes precedence, then a credential in the URL, then the session. */
function callerOf(deps: AdmitDeps, route: Route, request: FastifyRequest): Awaitable<Principal> {
  if (carriesKey(request.raw)) return identify(request.raw, deps);
  const { ticket } = request.query as { ticket?: unknown };
  if (route.acceptsTicket === true && deps.tickets !== undefined && typeof ticket === 'string')
    return stillGood(deps.accounts, deps.tickets.holderOf(ticket, request.url));
  return route.acceptsLink?.(request) === true ? NOBODY : identify(request.raw, deps);
}

/** The holder of a ticket. Rejects with `invalid_ticket` if the key or session has ended. */
export async function stillGood(
  accounts: Pick<Authenticates, 'isCurrent' | 'holderOf'>,
  holder: TicketHolder,
): Promise<Principal> {
  if ('keyId' in holder) {
    try {
      return await accounts.holderOf(holder.keyId);
    } catch (error) {
      const hasEnded = isAppError(error, 'invalid_api_key') || isAppError(error, 'account_suspended');
      throw hasEnded ? endedTicket() : error;
    }
  }
  if (await accounts.isCurrent(holder)) return holder;
  throw endedTicket();
}

function endedTicket(): AppError {
  return new AppError('invalid_ticket', 'The key or session of this ticket has ended');
}

function enter(deps: AdmitDeps, route: Route, request: FastifyRequest): Promise<void> | undefined {
  const { principal } = request;
  limit(deps, route, request);
  if (principal.via === 'nobody' && route.acceptsLink?.(request)) return undefined;
  assertPermitted(principal, route.permission, hintOf(route));
  const asked = principal.via === 'session' ? asksForPassword(route) : null;
  if (asked === 'refuse') return deps.passwords?.assertFresh(principal);
  if (asked === 'hide') return hideSecret(deps, request);
  return undefined;
}

async function hideSecret({ passwords }: AdmitDeps, request: FastifyRequest): Promise<void> {
  request.isSecretHidden = passwords !== undefined && !(await passwords.isFresh(request.principal));
}

/** Browsers send no custom header when they open a URL. */
function hintOf({ acceptsLink, acceptsTicket }: Route): string {
  const link = acceptsLink === undefined ? [] : ['a link from GET /api/storage/{id}/cdn-url'];
  const ticket = acceptsTicket === true ? ['a ticket from POST /api/account/tickets'] : [];
  const ways = [...link, ...ticket].join(' or ');
  return ways === '' ? SEND_KEY : `${SEND_KEY}. A browser cannot do this; use ${ways}`;
}

function limit(deps: AdmitDeps, route: Route, request: FastifyRequest): void {
  if (!deps.limitsCalls || request.principal.via === 'control') return;
  if (!deps.door.limit(request, request.responseHeaders)) return;
  deps.routeLimiters.get(route.name)?.take(addressKey(request.address), request.responseHeaders);
}

const SEND_KEY = 'Send the key as X-API-Key: <key> or Authorization: Bearer <key>';

/** Throws `missing_api_key`, `admin_required` or `scope_required` unless the principal has the permission. */
export function assertPermitted(principal: Principal, permission: Permission, hint = SEND_KEY): void {
  if (permits(principal, permission)) return;
  if (principal.via === 'nobody') {
    throw new AppError('missing_api_key', 'This call needs an API key', { hint });
  }
  if (permission === 'admin') throw new AppError('admin_required', "This call needs an administrator's key");
  if (permission === 'admin:read')
    throw new AppError('admin_required', "This call needs an administrator's or an auditor's key");
  if (principal.isAuditor && permits({ ...principal, isAuditor: false }, permission))
    throw new AppError(
      'scope_required',
      `An auditor cannot change anything, and this call needs ${permission}`,
    );
  if (permission === 'everything')
    throw new AppError('scope_required', 'This call needs a key with all scopes and no limits to buckets');
  throw new AppError('scope_required', `This key lacks the scope ${permission}`);
}
