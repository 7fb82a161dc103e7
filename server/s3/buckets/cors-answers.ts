/** CORS in S3: preflights, and the headers of other responses. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { S3Error } from '../../../libs/s3-wire/index.ts';
import { type BucketSettings, settingsOf } from '../../storage/buckets/bucket-settings.ts';
import type { BucketRow } from '../../storage/buckets/buckets.ts';
import type { S3Answer } from '../s3-call.ts';
import type { Target } from '../target.ts';
import { corsHeaders, headerNames } from './cors.ts';

const VARY = 'Origin, Access-Control-Request-Headers, Access-Control-Request-Method';
const METHODS = ['GET', 'PUT', 'HEAD', 'POST', 'DELETE'];

const rulesOf = (bucket: BucketRow | undefined): BucketSettings['cors'] =>
  bucket === undefined ? undefined : settingsOf(bucket).cors;

/** The response to a preflight. Throws S3Error BadRequest, NoSuchBucket, AccessForbidden. */
export function preflight(
  { headers }: { readonly headers: IncomingHttpHeaders },
  { key }: Target,
  bucket: BucketRow | undefined,
): S3Answer {
  const { origin, 'access-control-request-method': method } = headers;
  if (origin === undefined || origin === '') {
    throw new S3Error('BadRequest', 'Insufficient information. Origin request header needed.');
  }
  if (method === undefined || !METHODS.includes(method)) {
    throw new S3Error('BadRequest', `Invalid Access-Control-Request-Method: ${method ?? 'null'}`);
  }
  const fields = { Method: method, ResourceType: key === null ? 'BUCKET' : 'OBJECT' };
  const vary = { vary: VARY };
  const rules = rulesOf(bucket);
  if (rules === undefined) {
    const message = 'CORSResponse: CORS is not enabled for this bucket.';
    throw new S3Error('AccessForbidden', message, { fields, headers: vary });
  }
  const asked = {
    origin,
    method,
    headers: headerNames(String(headers['access-control-request-headers'] ?? '')),
  };
  const allowed = corsHeaders(rules, asked);
  if (allowed !== null) return { headers: { ...allowed, ...vary } };
  throw new S3Error(
    'AccessForbidden',
    'CORSResponse: This CORS request is not allowed. This is usually because the evaluation of Origin, ' +
      'request method / Access-Control-Request-Method or Access-Control-Request-Headers are not ' +
      "whitelisted by the resource's CORS spec.",
    { fields, headers: vary },
  );
}

/** Sets the headers that let the origin of a request read the response, if the bucket has rules. */
export function allowOrigin(
  { headers, method = '' }: IncomingMessage,
  response: ServerResponse,
  bucket: BucketRow | undefined,
): void {
  const rules = rulesOf(bucket);
  if (rules === undefined) return;
  response.setHeader('vary', VARY);
  const { origin, 'access-control-request-method': asked = method } = headers;
  if (origin === undefined) return;
  const allowed = corsHeaders(rules, { origin, method: asked, headers: [] });
  for (const [name, value] of Object.entries(allowed ?? {})) response.setHeader(name, value);
}
