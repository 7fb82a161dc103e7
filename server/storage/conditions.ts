/** `If-Match` and `If-None-Match` of calls that change an object (RFC 9110 §13.1). */
import { AppError } from '../platform/errors.ts';
import type { VersionRow } from './object-sql.ts';

/** What a condition may name: each change renews the id, another upload the etag. */
export type Tagged = Pick<VersionRow, 'version_id' | 'etag'>;

/**
 * Throws `precondition_failed` unless what is there now is what the caller means; undefined: nothing is
 * there, or a delete marker. To be asked where the change is built: of two who mean the same, one wins.
 */
export type Condition = (current: Tagged | undefined) => void;

interface Headers {
  readonly 'if-match'?: string | undefined;
  readonly 'if-none-match'?: string | undefined;
}

const ANOTHER = 'Another version of the object is current than the one you name';

/** Always fine where the request has neither header. */
export function conditionOf(headers: Headers): Condition {
  const { 'if-match': wanted, 'if-none-match': unwanted } = headers;
  return (current) => {
    if (wanted !== undefined && (current === undefined || !names(wanted, current, { isStrong: true }))) {
      throw failed(current === undefined ? 'There is no such object' : ANOTHER);
    }
    if (unwanted !== undefined && current !== undefined && names(unwanted, current, { isStrong: false })) {
      throw failed('There is such an object already');
    }
  };
}

/** `isStrong`: a weak tag names nothing (RFC 9110 §8.8.3.2). */
function names(header: string, { version_id, etag }: Tagged, { isStrong }: { isStrong: boolean }): boolean {
  const tags = header.split(',').map((tag) => tag.trim());
  const known = [`"${version_id}"`, `"${etag}"`];
  return tags.some((tag) => tag === '*' || known.includes(isStrong ? tag : tag.replace(/^W\//, '')));
}

function failed(what: string): AppError {
  return new AppError('precondition_failed', what, {
    hint: 'Somebody else has changed the object: read it again, then make your change to what it is now',
  });
}
