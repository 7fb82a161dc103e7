/** The values of a request for the condition keys of policies. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Principal } from '../../calls/principal.ts';
import type { ConditionValues } from './conditions.ts';

export interface RequestFacts {
  readonly caller: Principal;
  /** null: it is not signed. */
  readonly signature: {
    readonly authType: 'REST-HEADER' | 'REST-QUERY-STRING' | 'POST';
    readonly version: 'AWS' | 'AWS4-HMAC-SHA256';
    readonly timeMs: number | undefined;
  } | null;
  readonly headers: IncomingHttpHeaders;
  readonly query: ReadonlyMap<string, string>;
  /** The client's address, beyond trusted proxies. */
  readonly address: string;
  readonly isSecure: boolean;
  /** ms since 1970. */
  readonly now: number;
  /** Canonical id of the bucket's owner. */
  readonly owner: string;
}

export type Tags = Readonly<Record<string, string>>;

/** Tags relevant for one decision: of the existing object and of the request. */
export interface TagFacts {
  readonly existing?: Tags | undefined;
  readonly requested?: Tags | undefined;
}

const FROM_HEADERS = [
  ...['x-amz-acl', 'x-amz-content-sha256', 'x-amz-grant-full-control', 'x-amz-grant-read'],
  ...['x-amz-grant-read-acp', 'x-amz-grant-write', 'x-amz-grant-write-acp', 'x-amz-metadata-directive'],
  ...['x-amz-object-ownership', 'x-amz-server-side-encryption', 'x-amz-storage-class'],
  ...['x-amz-server-side-encryption-aws-kms-key-id', 'x-amz-server-side-encryption-customer-algorithm'],
  ...['x-amz-website-redirect-location', 'if-match', 'if-none-match'],
];
/** Conditions have shorter names for the headers of object lock. */
const LOCK_HEADERS: Readonly<Record<string, string>> = {
  'object-lock-legal-hold': 'x-amz-object-lock-legal-hold',
  'object-lock-mode': 'x-amz-object-lock-mode',
  'object-lock-retain-until-date': 'x-amz-object-lock-retain-until-date',
};
const FROM_QUERY = ['prefix', 'delimiter', 'max-keys'];
const EXISTING = 's3:existingobjecttag/';
const REQUESTED = 's3:requestobjecttag/';
const REQUESTED_KEYS = 's3:requestobjecttagkeys';

/** Common to all decisions of a request. */
export function requestValues(facts: RequestFacts): ReadonlyMap<string, readonly string[]> {
  const { caller, signature, headers, query, now } = facts;
  const values = new Map<string, readonly string[]>();
  const set = (name: string, value: unknown) => {
    if (typeof value === 'string') values.set(name, [value]);
  };
  for (const name of FROM_HEADERS) set(`s3:${name}`, headers[name]);
  for (const [name, header] of Object.entries(LOCK_HEADERS)) set(`s3:${name}`, headers[header]);
  for (const name of FROM_QUERY) set(`s3:${name}`, query.get(name));
  set('s3:versionid', query.get('versionId'));
  set('s3:x-amz-copy-source', copySourceOf(headers));
  set('s3:resourceaccount', facts.owner);
  set('aws:sourceip', facts.address.replace(/^::ffff:(?=\d+\.)/i, ''));
  set('aws:securetransport', String(facts.isSecure));
  set('aws:useragent', headers['user-agent']);
  set('aws:referer', headers.referer);
  set('aws:currenttime', new Date(now).toISOString());
  set('aws:epochtime', String(Math.floor(now / 1000)));
  set('aws:principaltype', signature === null ? 'Anonymous' : 'Account');
  if (signature === null) return values;
  set('aws:username', caller.username);
  set('aws:userid', caller.canonicalId);
  set('aws:principalaccount', caller.canonicalId);
  set('aws:principalarn', `arn:aws:iam::${caller.canonicalId}:root`);
  const { authType, version, timeMs } = signature;
  set('s3:authtype', authType);
  set('s3:signatureversion', version);
  if (timeMs !== undefined) set('s3:signatureage', String(Math.max(0, now - timeMs)));
  return values;
}

/** `bucket/key` of a copy. */
function copySourceOf({ 'x-amz-copy-source': header }: IncomingHttpHeaders): string | undefined {
  const [path = ''] = String(header ?? '').split('?', 1);
  if (header === undefined) return undefined;
  try {
    return decodeURIComponent(path).replace(/^\//, '');
  } catch {
    return path;
  }
}

/** Adds the tags of one object. */
export function withTags(
  values: ReadonlyMap<string, readonly string[]>,
  { existing = {}, requested = {} }: TagFacts,
): ConditionValues {
  return (name) => {
    const tag = (tags: Tags, start: string) => {
      const key = name.slice(start.length);
      return Object.hasOwn(tags, key) ? [tags[key] ?? ''] : undefined;
    };
    if (name.startsWith(EXISTING)) return tag(existing, EXISTING);
    if (name.startsWith(REQUESTED)) return tag(requested, REQUESTED);
    if (name !== REQUESTED_KEYS) return values.get(name);
    const keys = Object.keys(requested);
    return keys.length === 0 ? undefined : keys;
  };
}
