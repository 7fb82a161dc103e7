/** Invitations as shown to administrators. */
import { formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { toCredits } from '../credits.ts';
import type { Invitation } from './invitation-schema.ts';
import type { InvitationRow } from './invitations-store.ts';

export function stateOf(row: InvitationRow, now: number): Invitation['state'] {
  if (row.revoked_at !== null) return 'revoked';
  if (row.uses >= row.max_uses) return 'used';
  // An account that has ended already is of no use.
  const end = Math.min(row.expires_at, row.account_expires_at ?? Number.POSITIVE_INFINITY);
  return end > now ? 'open' : 'expired';
}

export function describe(row: InvitationRow, now: number): Invitation {
  return {
    id: row.id,
    label: row.label,
    username: row.username,
    email: row.email,
    plan: row.plan,
    credits: toCredits(row.credits_micro),
    spend_cap: row.spend_cap_micro === null ? null : toCredits(row.spend_cap_micro),
    account_expires_at: formatTimeOrNull(row.account_expires_at),
    state: stateOf(row, now),
    max_uses: row.max_uses,
    uses: row.uses,
    created_at: formatTime(row.created_at),
    created_by: row.created_by,
    expires_at: formatTime(row.expires_at),
    revoked_at: formatTimeOrNull(row.revoked_at),
    mailed: row.is_mailed === 1,
  };
}
