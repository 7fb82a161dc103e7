/**
 * Which scripts of other sites may read answers (CORS, Fetch §3.2). Never with credentials: a cookie is of
 * use to this origin alone, others send a key.
 */
import type { IncomingMessage } from 'node:http';

export interface CorsRules {
  /** As browsers send them, `https://app.example.com`; `*`: all. */
  readonly origins: readonly string[];
  /** Those that there are at an address. */
  readonly methodsAt: (url: string) => readonly string[];
}

const REQUEST_HEADERS = [
  ...['X-API-Key', 'Authorization', 'Content-Type', 'Idempotency-Key', 'Prefer', 'Accept'],
  ...['Range', 'If-Range', 'If-Match', 'If-None-Match', 'If-Modified-Since', 'If-Unmodified-Since'],
].join(', ');

const ANSWER_HEADERS = [
  ...['ETag', 'Link', 'Location', 'Content-Disposition', 'Content-Range', 'Accept-Ranges', 'Content-Length'],
  ...['Retry-After', 'RateLimit', 'RateLimit-Policy', 'X-RateLimit-Limit', 'X-RateLimit-Remaining'],
  ...['X-RateLimit-Reset', 'X-Request-Id', 'Idempotent-Replayed', 'Preference-Applied', 'Warning'],
].join(', ');

/** Browsers ask again after this long. */
const PREFLIGHT_SECONDS = 600;

/** Adds what any answer to `request` has of CORS: for scripts of sites that are not named, nothing. */
export function allowOrigin(
  { origins }: CorsRules,
  request: IncomingMessage,
  answerHeaders: Record<string, string>,
): void {
  const isOpen = origins.includes('*');
  if (!isOpen) varyOn(answerHeaders, 'Origin');
  const { origin } = request.headers;
  if (!isOpen && (origin === undefined || !origins.includes(origin))) return;
  answerHeaders['access-control-allow-origin'] = isOpen ? '*' : String(origin);
  answerHeaders['access-control-expose-headers'] = ANSWER_HEADERS;
}

/** True for the question of a browser that was allowed its origin; the headers then have the whole answer. */
export function answersPreflight(
  { methodsAt }: CorsRules,
  { method, headers, url = '' }: IncomingMessage,
  answerHeaders: Record<string, string>,
): boolean {
  const isAsked = method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;
  if (!isAsked || answerHeaders['access-control-allow-origin'] === undefined) return false;
  answerHeaders['access-control-allow-methods'] = methodsAt(url).join(', ');
  answerHeaders['access-control-allow-headers'] = REQUEST_HEADERS;
  answerHeaders['access-control-max-age'] = String(PREFLIGHT_SECONDS);
  return true;
}

/** Adds a name to the Vary header. */
export function varyOn(answerHeaders: Record<string, string>, name: string): void {
  answerHeaders.vary = answerHeaders.vary === undefined ? name : `${answerHeaders.vary}, ${name}`;
}
