/** The rules for what a webhook is given. */
import { assertFields, type FieldProblem } from '../platform/errors.ts';

interface GivenFields {
  readonly url?: string | undefined;
  readonly description?: string | undefined;
}

/** Throws `invalid_request` naming every given field that breaks its rule. */
export function assertWebhookFields({ url, description }: GivenFields): void {
  const problems: FieldProblem[] = [];
  const note = (field: string, message: string | undefined) => {
    if (message !== undefined) problems.push({ field, message });
  };
  if (url !== undefined) note('url', urlProblem(url));
  if (description !== undefined) note('description', descriptionProblem(description));
  assertFields(problems);
}

/** http or https, without name and password, and without a fragment, which is never sent. */
function urlProblem(text: string): string | undefined {
  const url = URL.parse(text);
  if (url === null) return 'is no absolute URL';
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return 'must begin with https:// or http://';
  if (url.username !== '' || url.password !== '') {
    return 'must hold no name and password; the signature proves who sends';
  }
  if (text.includes('#')) return 'must have no fragment';
  if (/[\p{Cc}\s]/u.test(text)) return 'must have no spaces and control characters';
  return undefined;
}

function descriptionProblem(text: string): string | undefined {
  const isPlain = text.isWellFormed() && !/\p{Cc}/u.test(text);
  return isPlain ? undefined : 'must have no control characters';
}
