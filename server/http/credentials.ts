/** Finds who is calling: a key in a header, the console's cookie, or the control socket. */
import type { IncomingMessage } from 'node:http';
import { NOBODY, OPERATOR, type Principal } from '../calls/principal.ts';
import type { Awaitable } from '../metadata/metadata.ts';
import { AppError } from '../platform/errors.ts';

export interface Authenticates {
  authenticate(credentials: { apiKey?: string; sessionToken?: string }): Awaitable<Principal>;
}

/** Connections by the control socket that showed the token, which only the operator's own user can read. */
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

/** True when the request has a key in a header, right or wrong. */
export function carriesKey({ headers }: IncomingMessage): boolean {
  return headers['x-api-key'] !== undefined || headers.authorization !== undefined;
}

export interface IdentifyDeps {
  readonly accounts: Authenticates;
  readonly control: ControlSockets;
  /** Where users reach the API by a proxy that may name another host to us; empty: as they say. */
  readonly publicUrl: string;
}

/** The caller's Principal; NOBODY when no credential was sent. */
export function identify(
  request: IncomingMessage,
  { accounts, control, publicUrl }: IdentifyDeps,
): Awaitable<Principal> {
  if (control.has(request.socket)) return OPERATOR;
  const apiKey = apiKeyOf(request);
  if (apiKey !== undefined) return accounts.authenticate({ apiKey });
  const sessionToken = readSessionCookie(request.headers.cookie);
  if (sessionToken === undefined) return NOBODY;
  assertSameSite(request, publicUrl);
  return accounts.authenticate({ sessionToken });
}

/**
 * A cookie travels with requests that other sites make. Browsers mark those: a change by cookie, or a log-in,
 * needs Sec-Fetch-Site same-origin (or none: typed by the user), or an Origin of our own. Throws
 * `cross_site_request`.
 */
export function assertSameSite(request: IncomingMessage, publicUrl: string): void {
  if (request.method === 'GET' || request.method === 'HEAD') return;
  const site = request.headers['sec-fetch-site'];
  const trusted =
    site === undefined ? hasOwnOrigin(request, publicUrl) : site === 'same-origin' || site === 'none';
  if (!trusted) {
    throw new AppError(
      'cross_site_request',
      'A session is begun and used only from the pages of this origin',
      {
        hint: 'Use an API key in X-API-Key for calls from elsewhere',
      },
    );
  }
}

/** True unless the request names an origin other than the host that was called, and than `publicUrl`. */
export function hasOwnOrigin({ headers: { origin, host } }: IncomingMessage, publicUrl: string): boolean {
  if (origin === undefined || (publicUrl !== '' && origin === new URL(publicUrl).origin)) return true;
  try {
    return host !== undefined && new URL(origin).host === host;
  } catch {
    return false;
  }
}

/**
 * The console's session cookie (RFC 6265). Behind https it has the `__Host-` prefix, with which browsers
 * refuse a cookie that another host or an unencrypted page tries to plant.
 */
const NAME = 'cloudlet_session';
const SECURE_NAME = `__Host-${NAME}`;
/** base64url of 32 bytes. */
const TOKEN = /^[A-Za-z0-9_-]{43}$/;

interface SessionCookie {
  readonly token: string;
  /** Users reach us by https. */
  readonly secure: boolean;
  readonly maxAgeSeconds: number;
}

/** The value of Set-Cookie that begins a session. */
export function renderSessionCookie({ token, secure, maxAgeSeconds }: SessionCookie): string {
  const name = secure ? SECURE_NAME : NAME;
  const flags = `Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax`;
  return `${name}=${token}; ${flags}${secure ? '; Secure' : ''}`;
}

/** The value of Set-Cookie that makes the browser forget it. */
export function renderEndedSessionCookie(secure: boolean): string {
  return renderSessionCookie({ token: '', secure, maxAgeSeconds: 0 });
}

/** The token in a Cookie header; undefined when there is none of the right form. The prefixed name wins. */
export function readSessionCookie(header: string | undefined): string | undefined {
  if (header === undefined || !header.includes(NAME)) return undefined;
  let plain: string | undefined;
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=');
    const name = pair.slice(0, equals).trim();
    if (equals < 0 || (name !== NAME && name !== SECURE_NAME)) continue;
    const token = pair.slice(equals + 1).trim();
    if (!TOKEN.test(token)) continue;
    if (name === SECURE_NAME) return token;
    plain ??= token;
  }
  return plain;
}
