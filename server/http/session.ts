/**
 * The console's session as sent by a browser: the cookie, the token that the page keeps, and the
 * headers that identify the requesting page.
 */
import type { IncomingMessage } from 'node:http';
import { AppError } from '../platform/errors.ts';

/** Both secrets of a session, as sent. */
export interface SentSession {
  readonly cookies: readonly string[];
  readonly token: string | undefined;
}

/** Header with the session token, which other sites cannot send. */
const SESSION_HEADER = 'cloudlet-session';

/** undefined: the request has no session. */
export function sessionIn(request: IncomingMessage): SentSession | undefined {
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
 * Browsers also send the cookie with requests from other sites, and mark them: a login needs
 * Sec-Fetch-Site same-origin (or none: typed by the user), or our own Origin, if the browser sends
 * either. Throws `cross_site_request`.
 */
export function assertSameSite(request: IncomingMessage, publicUrl: string): void {
  const site = request.headers['sec-fetch-site'];
  const trusted =
    site === undefined ? hasOwnOrigin(request, publicUrl) : site === 'same-origin' || site === 'none';
  if (!trusted) throw crossSite('Sessions can only be used by pages of this origin');
}

/** For changes with a session cookie: refuses requests without `Origin` or `Sec-Fetch-Site` of the page. */
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

/** True unless the request names an origin other than its host and `publicUrl`. */
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

/** The Set-Cookie value that starts a session. */
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
 * The well-formed session cookies of a Cookie header. There may be several, because programs on
 * other ports of the host, and names below a common domain, can set some; the authenticator finds
 * the session's.
 */
export function readSessionCookies(header: string | undefined): string[] {
  if (header === undefined || !header.includes(NAME)) return [];
  return header.split(';').flatMap((pair) => {
    const [name = '', value = ''] = pair.split('=', 2).map((part) => part.trim());
    return (name === NAME || name === SECURE_NAME) && TOKEN.test(value) ? [value] : [];
  });
}
