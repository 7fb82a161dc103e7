/** Signs S3 requests with AWS Signature Version 4, for tests: a direct implementation of Amazon's text. */
import { createHash, createHmac } from 'node:crypto';

export const EXAMPLE_KEY = 'AKIAIOSFODNN7EXAMPLE';
export const EXAMPLE_SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';
export const EXAMPLE_TIME = '20130524T000000Z';
export const EXAMPLE_MS = Date.UTC(2013, 4, 24);
const SCOPE = '20130524/us-east-1/s3/aws4_request';

export interface UnsignedRequest {
  readonly method: string;
  /** Encoded for signing. */
  readonly path: string;
  /** `name=value`, encoded; any order. */
  readonly query?: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

export function sha256(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

export function exampleKey(secret: string): Buffer {
  return ['20130524', 'us-east-1', 's3', 'aws4_request'].reduce<Buffer>(hmac, Buffer.from(`AWS4${secret}`));
}

function signature(secret: string, kind: string, lines: readonly string[]): string {
  const text = [kind, EXAMPLE_TIME, SCOPE, ...lines].join('\n');
  return hmac(exampleKey(secret), text).toString('hex');
}

function canonical(request: UnsignedRequest, names: readonly string[], payload: string): string {
  const { method, path, query = [], headers } = request;
  const pairs = query.map((pair) => (pair.includes('=') ? pair : `${pair}=`)).sort();
  const lines = names.map((name) => `${name}:${headers[name] ?? ''}\n`).join('');
  return [method, path, pairs.join('&'), lines, names.join(';'), payload].join('\n');
}

/** The value of Authorization. All headers are signed, with names in lower case. */
export function authorization(request: UnsignedRequest, secret: string): string {
  const names = Object.keys(request.headers).sort();
  const payload = request.headers['x-amz-content-sha256'] ?? '';
  const signed = signature(secret, 'AWS4-HMAC-SHA256', [sha256(canonical(request, names, payload))]);
  return `AWS4-HMAC-SHA256 Credential=${EXAMPLE_KEY}/${SCOPE},SignedHeaders=${names.join(';')},Signature=${signed}`;
}

/** The whole query of a presigned URL. All headers are signed. */
export function presignedQuery(request: UnsignedRequest, secret: string, expires = '86400'): string {
  const names = Object.keys(request.headers).sort();
  const query = [
    ...(request.query ?? []),
    'X-Amz-Algorithm=AWS4-HMAC-SHA256',
    `X-Amz-Credential=${encodeURIComponent(`${EXAMPLE_KEY}/${SCOPE}`)}`,
    `X-Amz-Date=${EXAMPLE_TIME}`,
    `X-Amz-Expires=${expires}`,
    `X-Amz-SignedHeaders=${encodeURIComponent(names.join(';'))}`,
  ];
  const text = canonical({ ...request, query }, names, 'UNSIGNED-PAYLOAD');
  const signed = signature(secret, 'AWS4-HMAC-SHA256', [sha256(text)]);
  return [...query, `X-Amz-Signature=${signed}`].join('&');
}

/** The signature of one chunk of `aws-chunked`, after the previous one. */
export function chunkSignature(secret: string, before: string, chunk: Uint8Array): string {
  return signature(secret, 'AWS4-HMAC-SHA256-PAYLOAD', [before, sha256(''), sha256(chunk)]);
}

/** The signature of the trailers, each `name:value\n`. */
export function trailerSignature(secret: string, before: string, trailers: string): string {
  return signature(secret, 'AWS4-HMAC-SHA256-TRAILER', [before, sha256(trailers)]);
}
