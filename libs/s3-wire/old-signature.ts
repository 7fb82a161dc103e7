/**
 * AWS Signature Version 2. It covers neither the body nor all headers, so in headers it is off
 * unless the operator enables it for old clients. In presigned URLs boto3 uses it by default with
 * custom endpoints. https://docs.aws.amazon.com/AmazonS3/latest/API/RESTAuthentication.html
 */
import { createHmac } from 'node:crypto';
import type { Payload } from './credentials.ts';
import { readTime } from './credentials.ts';
import { S3Error } from './s3-error.ts';
import {
  amzPairs,
  anonymousPayload,
  type Claim,
  canonicalPaths,
  checkTime,
  isSameText,
  type RawHeaders,
  type RequestHead,
} from './signature.ts';

/** Signed parameters, which identify the resource or change the response. */
const SIGNED_PARAMETERS =
  /^(?:accelerate|acl|analytics|attributes|cors|delete|encryption|inventory|legal-hold|lifecycle|location|logging|metrics|notification|object-lock|ownershipControls|partNumber|policy|policyStatus|publicAccessBlock|replication|requestPayment|response-(?:cache-control|content-disposition|content-encoding|content-language|content-type|expires)|restore|retention|select|select-type|tagging|torrent|uploadId|uploads|versionId|versioning|versions|website|intelligent-tiering)$/;

type Pair = readonly [name: string, value?: string];

/**
 * The claim of a request signed with this version; null for all others, and without `inHeaders` for
 * one signed in its headers. `hostBucket`: the bucket in the host name. Throws S3Error
 * InvalidArgument, AccessDenied.
 */
export function oldClaim(
  head: RequestHead,
  { hostBucket, inHeaders }: { readonly hostBucket: string | null; readonly inHeaders: boolean },
): Claim | null {
  const { headers } = head;
  const pairs = queryPairs(head.rawQuery);
  const [authorization] = headers.get('authorization') ?? [];
  const inQuery = pairs.some(([name]) => name === 'AWSAccessKeyId');
  if (inQuery && authorization === undefined) return queryClaim(head, { headers, pairs, hostBucket });
  // Two signatures are refused by the reader of version 4.
  if (!inHeaders || inQuery || authorization === undefined || !/^AWS(?: |$)/.test(authorization)) return null;
  return headerClaim(head, { headers, pairs, hostBucket, authorization });
}

interface Parts {
  readonly headers: RawHeaders;
  readonly pairs: readonly Pair[];
  readonly hostBucket: string | null;
}

function headerClaim(head: RequestHead, parts: Parts & { readonly authorization: string }): Claim {
  const { headers, authorization } = parts;
  const [, accessKeyId = '', signature = ''] = /^AWS\s+([^:\s]+):(\S+)$/.exec(authorization) ?? [];
  if (accessKeyId === '') {
    throw new S3Error(
      'InvalidArgument',
      'AWS authorization header is invalid.  Expected AwsAccessKeyId:signature',
      { fields: { ArgumentName: 'Authorization', ArgumentValue: authorization } },
    );
  }
  const timeMs = readTime(headers);
  const date = headers.has('x-amz-date') ? '' : textOf(headers, 'date');
  const dateTime = headers.get('x-amz-date')?.join() ?? date;
  const check = (nowMs: number) => checkTime({ timeMs, dateTime, expiresSeconds: null }, nowMs);
  return claimOf(head, { ...parts, accessKeyId, signature, date, check });
}

function queryClaim(head: RequestHead, parts: Parts): Claim {
  const value = (name: string) => parts.pairs.find(([each]) => each === name)?.[1] ?? '';
  const [accessKeyId, signature, expires] = ['AWSAccessKeyId', 'Signature', 'Expires'].map(value) as [
    string,
    string,
    string,
  ];
  if ([accessKeyId, signature, expires].includes('')) {
    throw new S3Error(
      'AccessDenied',
      'Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters',
    );
  }
  if (!/^\d{1,12}$/.test(expires)) {
    throw new S3Error(
      'AccessDenied',
      `Invalid date (should be seconds since epoch): ${expires.slice(0, 100)}`,
    );
  }
  const check = (nowMs: number) => {
    if (nowMs <= Number(expires) * 1000) return;
    const Expires = new Date(Number(expires) * 1000).toISOString();
    throw new S3Error('AccessDenied', 'Request has expired', {
      fields: { Expires, ServerTime: new Date(nowMs).toISOString() },
    });
  };
  const headers = withRawQueryHeaders(parts.headers, head.rawQuery);
  const claim = claimOf(head, { ...parts, headers, accessKeyId, signature, date: expires, check });
  return { ...claim, isPresigned: true };
}

interface Signed extends Parts {
  readonly accessKeyId: string;
  readonly signature: string;
  /** The string to sign. */
  readonly date: string;
  /** Throws S3Error outside the validity of the request. */
  readonly check: (nowMs: number) => void;
}

function claimOf(head: RequestHead, { accessKeyId, signature, check, ...parts }: Signed): Claim {
  const verify = (secret: string, nowMs: number) => {
    check(nowMs);
    const texts = [...textsToSign(head, parts)];
    const isSigned = (text: string) =>
      isSameText(createHmac('sha1', secret).update(text, 'latin1').digest('base64'), signature);
    if (texts.some(isSigned)) return null;
    throw new S3Error('SignatureDoesNotMatch', undefined, {
      fields: {
        AWSAccessKeyId: accessKeyId,
        StringToSign: texts[0] ?? '',
        SignatureProvided: signature,
      },
    });
  };
  return { accessKeyId, payload: payloadOf(head, head.headers), verify };
}

/** Clients that send trailers announce them without version 4's values. */
function payloadOf(head: RequestHead, headers: RawHeaders): Payload {
  const isFramed =
    headers.has('x-amz-trailer') && /\baws-chunked\b/.test(textOf(headers, 'content-encoding'));
  if (isFramed && !headers.has('x-amz-content-sha256')) {
    return { kind: 'chunked', signed: false, trailer: true };
  }
  return anonymousPayload(head);
}

/** Every string that the client may have signed. */
function* textsToSign(
  { method, rawPath }: RequestHead,
  { headers, pairs, hostBucket, date }: Omit<Signed, 'accessKeyId' | 'signature' | 'check'>,
): Generator<string> {
  const signed = pairs.filter(([name]) => SIGNED_PARAMETERS.test(name));
  const query = signed.toSorted(([a], [b]) => (a < b ? -1 : 1)).map((pair) => pair.join('='));
  const host = hostBucket === null ? '' : `/${hostBucket}`;
  const [md5, type] = [textOf(headers, 'content-md5'), textOf(headers, 'content-type')];
  // Clients sign `/bucket/` when they request `/bucket`.
  const isBare = hostBucket === null && /^\/[^/]+$/.test(rawPath);
  for (const path of [...canonicalPaths(rawPath), ...(isBare ? canonicalPaths(`${rawPath}/`) : [])]) {
    const resource = `${host}${path}${query.length === 0 ? '' : `?${query.join('&')}`}`;
    yield [method, md5, type, date, `${amzHeaders(headers)}${resource}`].join('\n');
  }
}

function amzHeaders(headers: RawHeaders): string {
  return [...headers.keys()]
    .filter((name) => name.startsWith('x-amz-'))
    .sort()
    .map((name) => `${name}:${textOf(headers, name)}\n`)
    .join('');
}

function textOf(headers: RawHeaders, name: string): string {
  return (headers.get(name) ?? []).map((value) => value.trim().replace(/\s+/g, ' ')).join(',');
}

/** Decoded, one character per byte; a name without `=` has no value. */
function queryPairs(rawQuery: string): Pair[] {
  const decoded = (text: string) =>
    text.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return rawQuery
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => {
      const equals = pair.indexOf('=');
      if (equals < 0) return [decoded(pair)];
      return [decoded(pair.slice(0, equals)), decoded(pair.slice(equals + 1))];
    });
}

/** Headers that Signature Version 2 covers in a presigned URL: those sent, and those in its query. */
function withRawQueryHeaders(headers: RawHeaders, rawQuery: string): RawHeaders {
  const added = amzPairs(rawQuery).filter(([name]) => !headers.has(name));
  if (added.length === 0) return headers;
  const merged = new Map<string, readonly string[]>(headers);
  for (const [name, value] of added) merged.set(name, [...(merged.get(name) ?? []), value]);
  return merged;
}
