/**
 * Authentication, rate limits and permissions of a request: credentials (a key in a header, cookie and token
 * of the console's session, a ticket, the control socket), token buckets in memory, and the permission of
 * the route.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { NOBODY, OPERATOR, type Permission, type Principal, permits } from '../calls/principal.ts';
import type { TicketHolder, Tickets } from '../calls/tickets.ts';
import type { Awaitable } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError, isAppError } from '../platform/errors.ts';
import { sourceOf } from '../platform/host/caller-networks.ts';
import type { Door } from './exchange.ts';
import type { Route } from './route.ts';

/** Both secrets of a session, as they were sent. */
export interface SentSession {
  readonly cookies: readonly string[];
  readonly token: string | undefined;
}

export interface Authenticates {
  authenticate(credentials: { apiKey?: string; session?: SentSession }): Awaitable<Principal>;
  /** False once its key or session has ended, or its account is suspended or closed. */
  isCurrent(principal: Principal): Awaitable<boolean>;
  /** The holder of the key with this id; throws or rejects as `authenticate` does. */
  holderOf(keyId: string): Awaitable<Principal>;
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
  /** For requests of the operator that another node has passed on. */
  readonly door: Pick<Door, 'forwarded'>;
  /** URL of the API behind a proxy that may change the Host header; empty: the Host header counts. */
  readonly publicUrl: string;
}

/** The caller's Principal; NOBODY when no credential was sent. */
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

/** Header of the session token, which the page keeps and no other site can send. */
const SESSION_HEADER = 'cloudlet-session';

function sessionIn(request: IncomingMessage): SentSession | undefined {
  const cookies = readSessionCookies(request.headers.cookie);
  const token = sessionTokenIn(request);
  return token === undefined && cookies.length === 0 ? undefined : { cookies, token };
}

/** The session token of the request. */
export function sessionTokenIn({ headers }: IncomingMessage): string | undefined {
  const token = headers[SESSION_HEADER];
  return typeof token === 'string' ? token : undefined;
}

/**
 * Browsers also send the cookie with requests that other sites make, and mark those: a login needs
 * Sec-Fetch-Site same-origin (or none: typed by the user), or an Origin of our own, where the browser sends
 * either. Throws `cross_site_request`.
 */
export function assertSameSite(request: IncomingMessage, publicUrl: string): void {
  const site = request.headers['sec-fetch-site'];
  const trusted =
    site === undefined ? hasOwnOrigin(request, publicUrl) : site === 'same-origin' || site === 'none';
  if (!trusted) throw crossSite('Sessions can only be used by pages of this origin');
}

/** A session's change: a browser that says nothing of the page's origin is refused too. */
export function assertOwnPage(request: IncomingMessage, publicUrl: string): void {
  const { method, headers } = request;
  if (method === 'GET' || method === 'HEAD') return;
  assertSameSite(request, publicUrl);
  if (headers.origin !== undefined || headers['sec-fetch-site'] !== undefined) return;
  throw crossSite(
    'A change by a session needs the header Origin or Sec-Fetch-Site, which names the calling page',
  );
}

function crossSite(detail: string): AppError {
  const hint = 'For calls from other origins, and from programs, use an API key in X-API-Key';
  return new AppError('cross_site_request', detail, { hint });
}

/** True unless the request names an origin other than its own host and `publicUrl`. */
export function hasOwnOrigin({ headers: { origin, host } }: IncomingMessage, publicUrl: string): boolean {
  if (origin === undefined || (publicUrl !== '' && origin === new URL(publicUrl).origin)) return true;
  try {
    return host !== undefined && new URL(origin).host === host;
  } catch {
    return false;
  }
}

/**
 * The console's session cookie (RFC 6265). With HTTPS it has the `__Host-` prefix, with which browsers refuse
 * a cookie that another host or an unencrypted page tries to set.
 */
const NAME = 'cloudlet_session';
const SECURE_NAME = `__Host-${NAME}`;
/** base64url of 32 bytes. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

interface SessionCookie {
  readonly value: string;
  /** Whether users reach us over HTTPS. */
  readonly secure: boolean;
  readonly maxAgeSeconds: number;
}

/** The value of Set-Cookie that begins a session. */
export function renderSessionCookie({ value, secure, maxAgeSeconds }: SessionCookie): string {
  const name = secure ? SECURE_NAME : NAME;
  const flags = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
  return `${name}=${value}; ${flags}${secure ? '; Secure' : ''}`;
}

/** The value of Set-Cookie that deletes the cookie. */
export function renderEndedSessionCookie(secure: boolean): string {
  return renderSessionCookie({ value: '', secure, maxAgeSeconds: 0 });
}

/**
 * The well-formed session cookies of a Cookie header. There may be several, for programs behind other ports
 * of the host, and names below a common domain, can add some; the authenticator knows which is the
 * session's.
 */
export function readSessionCookies(header: string | undefined): string[] {
  if (header === undefined || !header.includes(NAME)) return [];
  return header.split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.split('=', 2).map((part) => part.trim());
    return (name === NAME || name === SECURE_NAME) && TOKEN.test(value) ? [value] : [];
  });
}

/** A limit of requests by token buckets. */
export interface RateLimit {
  /** Name shown in the headers. */
  readonly name: string;
  readonly requests: number;
  readonly windowSeconds: number;
}

interface Bucket {
  tokens: number;
  updatedAt: number;
}

/** Maximum callers kept; beyond, the oldest is dropped, which only ever grants tokens. */
const MAX_BUCKETS = 100_000;

/** Tolerance for rounding: a caller who waited for Retry-After must find a token. */
const ROUNDING = 1e-9;

export class RateLimiter {
  readonly limit: RateLimit;
  readonly #clock: Clock;
  readonly #policy: string;
  readonly #perMs: number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(limit: RateLimit, clock: Clock) {
    this.limit = limit;
    this.#clock = clock;
    this.#policy = `"${limit.name}";q=${limit.requests};w=${limit.windowSeconds}`;
    this.#perMs = limit.requests / (limit.windowSeconds * 1000);
  }

  /**
   * Takes one token of `caller` and writes the headers. Throws AppError `rate_limited` if none is left.
   * Headers: RateLimit and RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers, and X-RateLimit-*.
   */
  take(caller: string, headers: Record<string, string>): void {
    const { bucket, isAllowed } = this.#spend(caller);
    this.#tell(bucket, headers);
    if (!isAllowed) throw this.#refusal(bucket);
  }

  /** Like take(), but writes the headers of this limit only if it refuses. */
  takeUnseen(caller: string, headers: Record<string, string>): void {
    const { bucket, isAllowed } = this.#spend(caller);
    if (isAllowed) return;
    this.#tell(bucket, headers);
    throw this.#refusal(bucket);
  }

  #spend(caller: string): { readonly bucket: Bucket; readonly isAllowed: boolean } {
    const bucket = this.#bucketOf(caller, this.#clock.monotonic());
    const isAllowed = bucket.tokens >= 1 - ROUNDING;
    if (isAllowed) bucket.tokens = Math.max(0, bucket.tokens - 1);
    return { bucket, isAllowed };
  }

  #tell(bucket: Bucket, headers: Record<string, string>): void {
    const left = Math.floor(bucket.tokens);
    const resetSeconds = Math.ceil(this.#secondsFor(this.limit.requests - bucket.tokens));
    headers['ratelimit-policy'] = this.#policy;
    headers.ratelimit = `"${this.limit.name}";r=${left};t=${resetSeconds}`;
    headers['x-ratelimit-limit'] = String(this.limit.requests);
    headers['x-ratelimit-remaining'] = String(left);
    headers['x-ratelimit-reset'] = String(Math.ceil(this.#clock.now() / 1000) + resetSeconds);
  }

  #secondsFor(tokens: number): number {
    return (tokens * this.limit.windowSeconds) / this.limit.requests;
  }

  #refusal(bucket: Bucket): AppError {
    const { name, requests, windowSeconds } = this.limit;
    return new AppError(
      'rate_limited',
      `More than ${requests} requests in ${windowSeconds} s (limit "${name}")`,
      {
        retryAfterSeconds: this.#secondsFor(1 - bucket.tokens),
        hint: 'Wait for the number of seconds in Retry-After; the operator can raise the limit',
      },
    );
  }

  #bucketOf(caller: string, now: number): Bucket {
    const known = this.#buckets.get(caller);
    if (known) {
      known.tokens = Math.min(this.limit.requests, known.tokens + (now - known.updatedAt) * this.#perMs);
      known.updatedAt = now;
      return known;
    }
    if (this.#buckets.size >= MAX_BUCKETS) {
      const oldest = this.#buckets.keys().next().value;
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    const fresh = { tokens: this.limit.requests, updatedAt: now };
    this.#buckets.set(caller, fresh);
    return fresh;
  }
}

/** The identity that limits apply to. */
export interface Caller {
  readonly principal: Principal;
  readonly address: string;
}

/** The limits of every request: per credential and account, or per address without a credential. */
export class CallerLimits {
  readonly #perCaller: RateLimiter;
  readonly #perAccount: RateLimiter;

  constructor(perCaller: RateLimiter, perAccount: RateLimiter) {
    this.#perCaller = perCaller;
    this.#perAccount = perAccount;
  }

  /** Like RateLimiter.take; the headers are those of the credential's limit unless the account's refuses. */
  take({ principal, address }: Caller, headers: Record<string, string>): void {
    const { via, credentialId, accountId } = principal;
    if (via === 'control') return;
    this.#perCaller.take(via === 'nobody' ? addressKey(address) : credentialId, headers);
    if (accountId !== 0) this.#perAccount.takeUnseen(String(accountId), headers);
  }
}

/** Rate limit key of an address. */
function addressKey(address: string): string {
  return `address:${sourceOf(address)}`;
}

export interface AdmitDeps extends IdentifyDeps {
  readonly accounts: Authenticates;
  /** Missing: none are taken. */
  readonly tickets?: Pick<Tickets, 'holderOf'>;
  readonly door: Door;
  /** False: the door's limit is for guesses alone, as on the origin of links. */
  readonly limitsCalls: boolean;
  /** Additional limits of some routes, by operation name. */
  readonly routeLimiters: ReadonlyMap<string, RateLimiter>;
}

/**
 * Sets the request's principal, takes a token of its limits and checks the route's permission. Synchronous if
 * the key is cached. Throws, or rejects with, the refusal.
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
    enter(deps, route, request);
    return undefined;
  }
  return found.then(
    (principal) => {
      request.principal = principal;
      enter(deps, route, request);
    },
    (error) => refuse(deps, route, request, error),
  );
}

/**
 * Throws the error, unless the route is public: a browser that follows a link sends its cookie alone, and the
 * metadata may be away. These are answered as nobody; a key that is wrong is told.
 */
// biome-ignore lint/complexity/useMaxParams: as its siblings, and the error
function refuse(deps: AdmitDeps, route: Route, request: FastifyRequest, error: unknown): void {
  limit(deps, route, request);
  const isNobody = !carriesKey(request.raw) || isAppError(error, 'overloaded');
  if (route.permission !== 'public' || !isNobody) throw error;
}

/** A key counts first, then what is in the address, then the session. */
function callerOf(deps: AdmitDeps, route: Route, request: FastifyRequest): Awaitable<Principal> {
  if (carriesKey(request.raw)) return identify(request.raw, deps);
  const { ticket } = request.query as { ticket?: unknown };
  if (route.acceptsTicket === true && deps.tickets !== undefined && typeof ticket === 'string')
    return stillGood(deps.accounts, deps.tickets.holderOf(ticket, request.url));
  return route.acceptsLink?.(request) === true ? NOBODY : identify(request.raw, deps);
}

/** The holder of a ticket. Rejects with `invalid_ticket` if its key or session has ended since. */
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

function enter(deps: AdmitDeps, route: Route, request: FastifyRequest): void {
  const { principal } = request;
  limit(deps, route, request);
  if (principal.via === 'nobody' && route.acceptsLink?.(request)) return;
  assertPermitted(principal, route.permission, hintOf(route));
}

/** Browsers send no header of ours when they open an address. */
function hintOf({ acceptsLink, acceptsTicket }: Route): string {
  const link = acceptsLink === undefined ? [] : ['a link from GET /api/storage/{id}/cdn-url'];
  const ticket = acceptsTicket === true ? ['a ticket from POST /api/account/tickets'] : [];
  const ways = [...link, ...ticket].join(' or ');
  return ways === '' ? SEND_KEY : `${SEND_KEY}. A browser, which cannot, takes ${ways}`;
}

function limit(deps: AdmitDeps, route: Route, request: FastifyRequest): void {
  if (!deps.limitsCalls || request.principal.via === 'control') return;
  if (!deps.door.limit(request, request.responseHeaders)) return;
  deps.routeLimiters.get(route.name)?.take(addressKey(request.address), request.responseHeaders);
}

const SEND_KEY = 'Send it as X-API-Key: <key> or Authorization: Bearer <key>';

/** Throws `missing_api_key`, `admin_required` or `scope_required` unless the principal has the permission. */
export function assertPermitted(principal: Principal, permission: Permission, hint = SEND_KEY): void {
  if (permits(principal, permission)) return;
  if (principal.via === 'nobody') {
    throw new AppError('missing_api_key', 'This call needs an API key', { hint });
  }
  if (permission === 'admin') throw new AppError('admin_required', "This call needs an administrator's key");
  throw new AppError('scope_required', `This key lacks the scope ${permission}`);
}
