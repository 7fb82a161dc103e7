/** Lists over REST: complete, or paged with the next page in the Link header. */
import type { FastifyRequest } from 'fastify';
import { AppError } from '../platform/errors.ts';
import { Type } from '../platform/json/json-schema.ts';

interface ListPage<T> {
  readonly request: FastifyRequest;
  /** undefined: the complete list. */
  readonly limit: number | undefined;
  /** Read one extra entry to see whether there is a next page. */
  readonly entries: AsyncIterable<T>;
  /** The cursor of the page after this entry. */
  readonly cursorOf: (entry: T) => string;
}

/** The entries as JSON texts; sets the Link header (RFC 8288) if there is a next page. */
export async function listPage<T>(page: ListPage<T>): Promise<AsyncIterable<string>> {
  const { request, limit, entries, cursorOf } = page;
  if (limit === undefined) return jsonTexts(entries);
  const found: T[] = [];
  for await (const entry of entries) found.push(entry);
  const shown = found.slice(0, limit);
  const last = shown.at(-1);
  if (found.length > limit && last !== undefined) {
    // The other query parameters apply to the next page as well.
    linkHeader(request, { ...(request.query as object), limit, cursor: cursorOf(last) });
  }
  return jsonTexts(shown);
}

export function invalidCursor(): AppError {
  return new AppError('invalid_cursor', 'The cursor is not from this list');
}

/** Items as JSON texts. */
export async function* jsonTexts(items: Iterable<unknown> | AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const item of items) yield JSON.stringify(item);
}

/** The row id after which a page starts, 0 for the first page. Throws `invalid_cursor`. */
export function rowIdCursor(cursor: string | undefined): number {
  const after = cursor === undefined ? 0 : Number(cursor);
  if (!Number.isSafeInteger(after)) throw invalidCursor();
  return after;
}

export function linkHeader(request: FastifyRequest, query: Readonly<Record<string, unknown>>): void {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value));
  }
  const path = request.url.split('?', 1)[0];
  request.responseHeaders.link = `<${path}?${search}>; rel="next"`;
}

/** Maximum page size. */
const MAX_LIMIT = 1000;

/** Query parameters of paged lists. */
export const Paging = {
  limit: Type.Optional(
    Type.Integer({
      $id: 'Limit',
      minimum: 1,
      maximum: MAX_LIMIT,
      description: 'Page size; turns on paging, and the `Link` header has the next page',
    }),
  ),
  cursor: Type.Optional(
    Type.String({
      $id: 'Cursor',
      maxLength: 8192,
      description: 'From the `Link` header of the previous page',
    }),
  ),
};
