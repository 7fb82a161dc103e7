/** Values that an invitation can have, and the errors of links. */
import { readTime } from '../../platform/clock.ts';
import { AppError, type FieldProblem, invalidField } from '../../platform/errors.ts';
import { toMicro } from '../credits.ts';
import type { InvitationRow } from './invitations-store.ts';

/** How invitations are made: by whom, and where their links lead. */
export interface Making {
  /** The administrator, for lists and the ledger. */
  readonly by: string;
  /** The administrator's; 0: none. */
  readonly accountId: number;
  readonly lifeSeconds: number | undefined;
  readonly isMailed: boolean;
  /** URL of the console in the links, and the host name for which they are valid. */
  readonly url: string;
  readonly host: string;
}

/** Terms of the account that an invitation opens. */
interface Terms {
  readonly credits?: number | undefined;
  readonly spend_cap?: number | undefined;
  readonly account_expires_at?: string | undefined;
}

/** Throws `invalid_request`. */
function microOf(credits: number, field: 'credits' | 'spend_cap'): number {
  if (!Number.isFinite(credits) || credits < 0 || credits > 1e9)
    throw invalidField(field, 'must be a number from 0 to 1000000000');
  return toMicro(credits, field);
}

/** null: no cap. Throws `invalid_request`. */
function capMicroOf(cap: number | undefined): number | null {
  return cap === undefined ? null : microOf(cap, 'spend_cap');
}

/** Throws `invalid_request`. */
function endOf(text: string | undefined, now: number): number | null {
  if (text === undefined) return null;
  const at = readTime('account_expires_at', text);
  if (at <= now) throw invalidField('account_expires_at', 'must be in the future');
  return at;
}

/** Columns of an invitation. Throws `invalid_request`. */
export function termsOf({ credits = 0, spend_cap: cap, account_expires_at: end }: Terms, now: number) {
  return {
    credits_micro: microOf(credits, 'credits'),
    spend_cap_micro: capMicroOf(cap),
    account_expires_at: endOf(end, now),
  };
}

/** A problem of each term that is refused. */
export function problemsOfTerms(terms: Terms, now: number): FieldProblem[] {
  const problems: FieldProblem[] = [];
  for (const one of [
    { credits: terms.credits },
    { spend_cap: terms.spend_cap },
    { account_expires_at: terms.account_expires_at },
  ])
    tried(problems, () => termsOf(one, now));
  return problems;
}

function tried(problems: FieldProblem[], work: () => unknown): void {
  try {
    work();
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    problems.push(...(error.fields ?? []));
  }
}

/** Throws `invalid_request` if there are problems. */
export function assertNone(problems: readonly FieldProblem[]): void {
  if (problems.length === 0) return;
  const detail = problems.map(({ field, message }) => `${field}: ${message}`).join('; ');
  throw new AppError('invalid_request', detail, { fields: problems });
}

export function invitationNotFound(): AppError {
  return new AppError('invitation_not_found', 'There is no such invitation');
}

/** `retry`: it is neither used up nor revoked, so that others have been invited meanwhile. */
export function cannotRenew({ uses, max_uses: most, revoked_at: revokedAt }: InvitationRow) {
  if (uses < most && revokedAt === null) return 'retry';
  const what = revokedAt === null ? 'is used up' : 'was revoked';
  return new AppError('write_conflict', `This invitation ${what}`, { hint: 'Create a new invitation' });
}

export function planGone(plan: string): AppError {
  return new AppError('plan_not_found', `The plan ${plan} of this invitation no longer exists`, {
    hint: 'Ask the administrator of this cloud for a new invitation',
  });
}

export function invalidLink(): AppError {
  return new AppError(
    'invalid_link',
    'The invitation is unknown, used, revoked or expired, or is for another host name',
    {
      hint: 'Ask the person who invited you for a new invitation. If you have used this one, sign in',
    },
  );
}
