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
