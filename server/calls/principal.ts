/** The caller and its permissions. Edges create one per request; domains check it. */
import type { CallEntry, Recorder } from '../metadata/change.ts';
import type { DataAudit } from './audit.ts';

/**
 * `*`, `<area>:*` or one right in an area. `storage:admin`: access to buckets, and their lifecycle.
 * `storage:append`: part of `storage:write`, see storage/object-lock.ts. `compute:connect` and
 * `databases:connect`: tunnels.
 */
export const SCOPES = [
  '*',
  'account:*',
  'account:read',
  'account:write',
  'storage:*',
  'storage:read',
  'storage:write',
  'storage:append',
  'storage:admin',
  'compute:*',
  'compute:read',
  'compute:write',
  'compute:connect',
  'databases:*',
  'databases:read',
  'databases:write',
  'databases:connect',
  'billing:*',
  'billing:read',
  'webhooks:*',
  'webhooks:read',
  'webhooks:write',
] as const;
export type Scope = (typeof SCOPES)[number];

/**
 * The permission a route requires: none, any credential, a scope, an administrator or an auditor;
 * `everything`: a credential with all scopes and no limits.
 */
export type Permission =
  | 'public'
  | 'authenticated'
  | 'account:read'
  | 'account:write'
  | 'storage:read'
  | 'storage:write'
  | 'storage:append'
  | 'storage:admin'
  | 'compute:read'
  | 'compute:write'
  | 'compute:connect'
  | 'databases:read'
  | 'databases:write'
  | 'databases:connect'
  | 'billing:read'
  | 'webhooks:read'
  | 'webhooks:write'
  | 'everything'
  | 'admin'
  | 'admin:read';

/**
 * A bucket that an access key is limited to, and within it the names that begin with `prefix`
 * (empty: all).
 */
export interface BucketLimit {
  readonly bucket: string;
  readonly prefix: string;
}

export interface Principal {
  /** 0 without a credential and for the control socket. */
  readonly accountId: number;
  readonly username: string;
  /** The public id of the account, 64 hex digits; empty without an account. */
  readonly canonicalId: string;
  readonly isAdmin: boolean;
  /** The account may read like an administrator, and change only its own sign-in. */
  readonly isAuditor: boolean;
  readonly scopes: readonly Scope[];
  /** null: no limit. */
  readonly bucketLimits: readonly BucketLimit[] | null;
  readonly via: 'nobody' | 'key' | 'session' | 'control';
  /** When the key expires, ms since 1970; null: never, or it is not a key. */
  readonly keyExpiresAt: number | null;
  /** Stable name of the credential, for rate limits and logs; never the secret. */
  readonly credentialId: string;
}

/**
 * The caller, and the statements that record the response in the commit with the effect: see
 * metadata/change.ts.
 */
export interface Call extends Recorder {
  readonly principal: Principal;
  /** Present if the call reads or writes objects. */
  readonly data?: DataAudit | undefined;
  /** Present if the call is an operation. */
  readonly work?: Work;
  /**
   * The entry in the audit log alone, for the first commit of a call with several: `record` stores the
   * response too. Absent: the call has none.
   */
  readonly entry?: CallEntry | undefined;
}

/** The progress of a call. */
export interface Progress {
  /** Items processed, and their bytes. */
  readonly done: number;
  readonly bytes: number;
  /** Total number of items and bytes; null: unknown. */
  readonly total: number | null;
  readonly totalBytes: number | null;
}

/** An operation as seen by its handler, which reports progress and observes cancellation. */
export interface Work {
  /** Aborted with `operation_cancelled`. */
  readonly signal: AbortSignal;
  report(progress: Progress): void;
}

export const NOBODY: Principal = {
  accountId: 0,
  username: '',
  canonicalId: '',
  isAdmin: false,
  isAuditor: false,
  scopes: [],
  bucketLimits: null,
  via: 'nobody',
  keyExpiresAt: null,
  credentialId: 'nobody',
};

/** The operator on the host, who uses the control socket and its token. */
export const OPERATOR: Principal = {
  accountId: 0,
  username: 'operator',
  canonicalId: '',
  isAdmin: true,
  isAuditor: false,
  scopes: ['*'],
  bucketLimits: null,
  via: 'control',
  keyExpiresAt: null,
  credentialId: 'control',
};

/** For events. A session is identified by a hash of its token. */
export function credentialOf({ via, credentialId }: Principal): string | null {
  return via === 'key' ? credentialId : null;
}

/** An auditor reads, as far as the credential allows, and manages its own sign-in. */
const AUDITOR_MAY: ReadonlySet<Permission> = new Set([
  ...(['account:read', 'account:write', 'storage:read', 'compute:read', 'databases:read'] as const),
  ...(['billing:read', 'webhooks:read', 'admin:read'] as const),
]);

/**
 * True when the principal's scopes cover the permission. `admin` also needs isAdmin and the full scope;
 * `admin:read`, which shows no secrets, isAdmin or isAuditor.
 */
export function permits(principal: Principal, permission: Permission): boolean {
  const { isAdmin, isAuditor, scopes, bucketLimits, via } = principal;
  if (permission === 'public') return true;
  if (permission === 'authenticated') return via !== 'nobody';
  if (isAuditor && !AUDITOR_MAY.has(permission)) return false;
  const isWhole = scopes.includes('*') && bucketLimits === null;
  if (permission === 'everything') return isWhole;
  if (permission === 'admin') return isAdmin && isWhole;
  if (permission === 'admin:read') return (isAdmin || isAuditor) && isWhole;
  return scopes.some((scope) => covers(scope, permission));
}

/** True if `scope` includes everything that `wanted` permits. */
export function covers(scope: Scope, wanted: Scope | Permission): boolean {
  if (scope === '*' || scope === wanted) return true;
  if (wanted === 'storage:append' && scope === 'storage:write') return true;
  return wanted.includes(':') && scope === `${wanted.slice(0, wanted.indexOf(':'))}:*`;
}

/** True for a key with `storage:append` but without the whole right to write: see storage/object-lock.ts. */
export function onlyAppends(principal: Principal): boolean {
  return principal.scopes.includes('storage:append') && !permits(principal, 'storage:write');
}

/** True if the principal may access object `name` in `bucket`. */
export function mayTouch(principal: Principal, bucket: string, name: string): boolean {
  const limits = principal.bucketLimits;
  return limits === null || limits.some((limit) => limit.bucket === bucket && name.startsWith(limit.prefix));
}
