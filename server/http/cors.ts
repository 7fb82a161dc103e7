/**
 * Which scripts of other sites may read answers (CORS, Fetch §3.2). Never with credentials: a cookie is of
 * use to this origin alone, others send a key.
 */
import type { IncomingMessage } from 'node:http';

export interface CorsRules {
  /** As browsers send them, `https://app.example.com`; `*`: all. */
  readonly origins: readonly string[];
  /** Methods that an address has. */
  readonly methodsAt: (url: string) => readonly string[];
}

const REQUEST_HEADERS = [
  ...['X-API-Key', 'Authorization', 'Content-Type', 'Idempotency-Key', 'Prefer', 'Accept'],
  ...['Range', 'If-Range', 'If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'],
].join(', ');

const RESPONSE_HEADERS = [
  ...['ETag', 'Link', 'Location', 'Content-Disposition', 'Content-Range', 'Accept-Ranges', 'Content-Length'],
  ...['Retry-After', 'RateLimit', 'RateLimit-Policy', 'X-RateLimit-Limit', 'X-RateLimit-Remaining'],
  ...['X-RateLimit-Reset', 'X-Request-Id', 'Idempotent-Replayed', 'Preference-Applied', 'Warning'],
].join(', ');

/** Browsers ask again after this long. */
const PREFLIGHT_SECONDS = 600;

/** Adds the CORS headers that every response carries; none for a site that is not in `origins`. */
export function allowOrigin(
  { origins }: CorsRules,
  request: IncomingMessage,
  responseHeaders: Record<string, string>,
): void {
  const isOpen = origins.includes('*');
  if (!isOpen) varyOn(responseHeaders, 'Origin');
  const { origin } = request.headers;
  if (!isOpen && (origin === undefined || !origins.includes(origin))) return;
  responseHeaders['access-control-allow-origin'] = isOpen ? '*' : String(origin);
  responseHeaders['access-control-expose-headers'] = RESPONSE_HEADERS;
}

/** True for the preflight of a browser whose origin is allowed; the headers are then its whole response. */
export function answersPreflight(
  { methodsAt }: CorsRules,
  { method, headers, url = '' }: IncomingMessage,
  responseHeaders: Record<string, string>,
): boolean {
  const isAsked = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
  if (!isAsked || responseHeaders['access-control-allow-origin'] === undefined) return false;
  responseHeaders['access-control-allow-methods'] = methodsAt(url).join(', ');
  responseHeaders['access-control-allow-headers'] = REQUEST_HEADERS;
  responseHeaders['access-control-max-age'] = String(PREFLIGHT_SECONDS);
  return true;
}

/** Adds a name to the Vary header. */
export function varyOn(responseHeaders: Record<string, string>, name: string): void {
  responseHeaders.vary = responseHeaders.vary === undefined ? name : `${responseHeaders.vary}, ${name}`;
}
