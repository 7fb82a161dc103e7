/**
 * Limits on what an access key may be granted: no more than the credential that creates or revokes it has.
 */
import { type BucketLimit, covers, type Principal, type Scope } from '../../calls/principal.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError, invalidField } from '../../platform/errors.ts';
import type { AccessKeyBody } from '../schema.ts';

/** True when `held` includes every permission of `scope`. */
export function coversScope(held: readonly Scope[], scope: Scope): boolean {
  return held.some((own) => covers(own, scope));
}

/** True when `held` allows every object that `limits` allows. null: no limit. */
export function coversLimits(
  held: readonly BucketLimit[] | null,
  limits: readonly BucketLimit[] | null,
): boolean {
  if (held === null) return true;
  if (limits === null) return false;
  return limits.every((limit) =>
    held.some((own) => own.bucket === limit.bucket && limit.prefix.startsWith(own.prefix)),
  );
}

export interface KeyRights {
  readonly scopes: readonly Scope[];
  readonly limits: readonly BucketLimit[] | null;
  /** ms since 1970; null: never. */
  readonly expiresAt: number | null;
}

/** Throws `scope_required` if the requested key could do more than its creator, or for longer. */
export function assertCovered(principal: Principal, { scopes, limits, expiresAt }: KeyRights): void {
  const beyond = scopes.filter((scope) => !coversScope(principal.scopes, scope));
  if (beyond.length > 0) {
    throw new AppError('scope_required', `A key cannot grant scopes it does not have: ${beyond.join(', ')}`);
  }
  if (!coversLimits(principal.bucketLimits, limits)) {
    throw new AppError(
      'scope_required',
      'A key limited to buckets can only create keys within its own limits',
    );
  }
  const end = principal.keyExpiresAt;
  if (end !== null && (expiresAt === null || expiresAt > end)) {
    throw new AppError('scope_required', 'A key that expires cannot create keys that expire later', {
      hint: `This key expires at ${formatTime(end)}`,
    });
  }
}

/** Throws `scope_required` unless the principal could have created the key itself. */
export function assertCouldHaveMade(principal: Principal, rights: KeyRights): void {
  try {
    assertCovered(principal, rights);
  } catch (cause) {
    throw new AppError('scope_required', 'A key can only revoke keys with no more rights than its own', {
      hint: "Use the account's own key or a session",
      cause,
    });
  }
}

const PLAIN_TIME = /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/;
const RFC3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)$/;
/** Date.parse accepts years up to 275760; timestamps here have four digits. */
const LAST_TIME = Date.UTC(9999, 11, 31);

/** Milliseconds since 1970, or undefined if `text` is not a valid time. */
function parseTime(text: string): number | undefined {
  const isPlain = PLAIN_TIME.test(text);
  if (!isPlain && !RFC3339.test(text)) return undefined;
  const ms = Date.parse(isPlain ? `${text.replace(' ', 'T')}Z` : text);
  // Date.parse turns 30 February into 2 March.
  if (Number.isNaN(ms) || (isPlain && formatTime(ms) !== text)) return undefined;
  return ms;
}

/** The expiry in the body; null: never. Throws `invalid_request`. */
export function readExpiry(body: AccessKeyBody, clock: Clock): number | null {
  const { expires_in: seconds, expires_at: text } = body;
  if (seconds !== undefined && text !== undefined) {
    throw invalidField('expires_at', 'cannot be given together with expires_in');
  }
  if (seconds !== undefined) return clock.now() + seconds * 1000;
  if (text === undefined) return null;
  const ms = parseTime(text);
  if (ms === undefined) throw invalidField('expires_at', 'must be YYYY-MM-DD HH:MM:SS, UTC, or RFC 3339');
  if (ms <= clock.now() || ms > LAST_TIME) throw invalidField('expires_at', 'must be in the future');
  return ms;
}
