/**
 * Headers that a presigned link carries in its query. Many signers put there what S3 acts on ("hoisting"),
 * so that who has the link need send no header: each stands for the header of its name.
 */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { queryPairs, type RawHeaders } from './canonical-request.ts';
import { headerText } from './header-text.ts';
import { S3Error } from './s3-error.ts';

/**
 * Parameters of the signature itself, and those that links do not support by Amazon's text: checksums of the
 * body, which some signers make of an empty one, and its framing.
 */
const NOT_ACTED_ON =
  /^x-amz-(?:algorithm|credential|date|expires|signedheaders|signature|security-token|content-sha256|checksum-.*|sdk-.*|trailer|decoded-content-length|user-agent)$/;
const COPY_SOURCE = 'x-amz-copy-source';

type Pair = readonly [name: string, value: string];

/** Names in lower case, and values with a character per byte, as Node gives those of headers. */
function amzPairs(rawQuery: string): Pair[] {
  const bytesOf = (text: string) =>
    text.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return queryPairs(rawQuery)
    .map(([name, value]): Pair => [bytesOf(name).toLowerCase(), bytesOf(value)])
    .filter(([name]) => name.startsWith('x-amz-'));
}

/**
 * The headers that a request counts with: those sent, and those in the query of a presigned URL whose
 * signature was verified. Throws S3Error AccessDenied for a header that says something else than the URL,
 * InvalidArgument for a parameter that comes twice or that no header can be, InvalidRequest for a copy that
 * the query of another request asks for.
 */
export function headersThatCount(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  rawQuery: string,
  isPresigned: boolean,
): IncomingHttpHeaders {
  if (!rawQuery.includes('=')) return headers;
  const pairs = amzPairs(rawQuery);
  if (isPresigned) return withPairs(headers, pairs);
  // The query of other requests counts for nothing, and an empty object must not be stored instead.
  if (method === 'PUT' && pairs.some(([name]) => name === COPY_SOURCE)) {
    throw new S3Error(
      'InvalidRequest',
      `${COPY_SOURCE} belongs into a header: in a query it counts for presigned URLs alone`,
    );
  }
  return headers;
}

function withPairs(headers: IncomingHttpHeaders, pairs: readonly Pair[]): IncomingHttpHeaders {
  const found: Record<string, string> = {};
  for (const [name, value] of pairs) {
    if (NOT_ACTED_ON.test(name)) continue;
    const text = headerText('parameter', name, value);
    if (Object.hasOwn(found, name)) {
      throw new S3Error('InvalidArgument', `The parameter ${name} may be given only once`, {
        fields: { ArgumentName: name },
      });
    }
    if (headers[name] !== undefined && headers[name] !== text) {
      throw new S3Error('AccessDenied', `The header ${name} differs from what the presigned URL says`);
    }
    found[name] = text;
  }
  return Object.keys(found).length === 0 ? headers : { ...headers, ...found };
}

/** The headers that Signature Version 2 covers in a presigned URL: those sent, and those of its query. */
export function withRawQueryHeaders(headers: RawHeaders, rawQuery: string): RawHeaders {
  const added = amzPairs(rawQuery).filter(([name]) => !headers.has(name));
  if (added.length === 0) return headers;
  const merged = new Map<string, readonly string[]>(headers);
  for (const [name, value] of added) merged.set(name, [...(merged.get(name) ?? []), value]);
  return merged;
}
