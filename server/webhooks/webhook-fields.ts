/** What a webhook's owner may set, beyond what the schema says. */
import { invalidField } from '../errors.ts';

/** http or https, without name and password, and without a fragment, which is never sent. */
export function requireWebhookUrl(text: string): void {
  const url = URL.parse(text);
  if (url === null) throw invalidField('url', 'is no absolute URL');
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw invalidField('url', 'must begin with https:// or http://');
  }
  if (url.username !== '' || url.password !== '') {
    throw invalidField('url', 'must hold no name and password; the signature proves who sends');
  }
  if (text.includes('#')) throw invalidField('url', 'must have no fragment');
  if (/[\p{Cc}\s]/u.test(text)) throw invalidField('url', 'must have no spaces and control characters');
}

export function requireDescription(text: string): void {
  if (!text.isWellFormed() || /\p{Cc}/u.test(text)) {
    throw invalidField('description', 'must have no control characters');
  }
}

const PLAIN_TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/;
const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/i;

/** ms since 1970. */
export function requireSince(text: string): number {
  const isPlain = PLAIN_TIME.test(text);
  const ms = isPlain || RFC3339.test(text) ? Date.parse(isPlain ? `${text.replace(' ', 'T')}Z` : text) : NaN;
  if (!Number.isNaN(ms)) return ms;
  throw invalidField('since', 'must be YYYY-MM-DD HH:MM:SS, UTC, or RFC 3339');
}
