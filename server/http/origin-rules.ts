/** Security headers of the two origins, and the CORS rules. */
import type { Config } from '../config/config.ts';
import { listIn } from '../config/host-names.ts';
import { isPublishedAt } from '../config/published-address.ts';
import type { CorsRules } from './origins.ts';

/** For the JSON API: responses must not be loaded as resources, framed, sniffed or cached. */
const API_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

/**
 * Users' files on the data origin never run as script. `sandbox` gives an opened HTML or SVG file an opaque
 * origin without scripts; pages of other origins may embed images.
 */
const DATA_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; media-src 'self'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'cross-origin',
};

const API_METHODS = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'];
const LINK_METHODS = ['GET', 'HEAD'];
const DATABASE_METHODS = ['GET', 'POST'];

export function apiHeaders(config: Config): Readonly<Record<string, string>> {
  return { ...API_HEADERS, ...hstsAt(config, config.publicUrl) };
}

export function dataHeaders(config: Config): Readonly<Record<string, string>> {
  return { ...DATA_HEADERS, ...hstsAt(config, config.dataUrl || config.publicUrl) };
}

/** null: no other origins. */
export function apiCors(config: Pick<Config, 'corsOrigins'>): CorsRules | null {
  const origins = listIn(config.corsOrigins);
  return origins.length === 0 ? null : { origins, methodsAt: () => API_METHODS };
}

/** A link or a database password grants access from any origin. */
export const DATA_CORS: CorsRules = {
  origins: ['*'],
  methodsAt: (url) => (url.startsWith('/db/') ? DATABASE_METHODS : LINK_METHODS),
};

const YEAR_SECONDS = 31_536_000;

/**
 * Strict-Transport-Security if users reach us over HTTPS. It applies to every port of a host name
 * (RFC 6797 §8.2), and most machines behind published ports use HTTP, so on their host names
 * browsers are told to remove it.
 */
function hstsAt(config: Config, url: string): Record<string, string> {
  if (!config.publicUrl.startsWith('https:') || !url.startsWith('https:')) return {};
  const seconds = isPublishedAt(config, new URL(url).hostname) ? 0 : YEAR_SECONDS;
  return { 'strict-transport-security': `max-age=${seconds}` };
}
