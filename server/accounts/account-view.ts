/** Rows as shown by the API. */
import type { Principal } from '../calls/principal.ts';
import type { MailAbout } from '../mail/outbox.ts';
import { formatTime, formatTimeOrNull } from '../platform/clock.ts';
import { toCredits } from './credits.ts';
import type { Account, AdminAccount, Registration } from './schema.ts';
import type { AccountRow } from './store.ts';

/** The caller, for ledgers, logs and events. The operator on the machine itself has no account. */
export function nameOf({ accountId, username }: Principal): string {
  return accountId === 0 ? 'the operator' : `${username} (account ${accountId})`;
}

/** `apiKey`: null if the caller may not see it. */
export function describeAccount(row: AccountRow, apiKey: string | null): Account {
  return {
    id: row.id,
    username: row.username,
    email: row.email,
    api_key: apiKey,
    plan: row.plan,
    credits: toCredits(BigInt(row.credits_micro) + BigInt(row.held_micro)),
    is_active: row.is_active === 1,
    created_at: formatTime(row.created_at),
    last_login: formatTimeOrNull(row.last_login),
    is_admin: row.is_admin === 1,
    is_auditor: row.is_auditor === 1,
    credits_held: toCredits(row.held_micro),
    billing_state: row.billing_state,
    credits_exhausted_at: formatTimeOrNull(row.exhausted_at),
    grace_ends_at: formatTimeOrNull(row.grace_ends_at),
    canonical_id: row.canonical_id,
    display_name: row.username,
    email_confirmed: row.email_verified_at !== null,
    mail_about: row.mail_about === '' ? [] : (row.mail_about.split(',') as MailAbout[]),
  };
}

/** Exactly the members of contract §3. */
export function describeRegistration(account: Account): Registration {
  const { id, username, email, api_key, plan, credits, is_active, created_at, last_login } = account;
  return { id, username, email, api_key, plan, credits, is_active, created_at, last_login };
}

export function describeForAdmin(row: AccountRow, seenAt: number | null): AdminAccount {
  const { api_key: _, ...account } = describeAccount(row, null);
  return {
    ...account,
    suspended_reason: row.suspended_reason,
    removed_at: formatTimeOrNull(row.removal_at),
    storage_bytes: Number(row.storage_bytes),
    expires_at: formatTimeOrNull(row.expires_at),
    invitation_id: row.invitation_id,
    spend_cap: row.admin_cap_micro === null ? null : toCredits(row.admin_cap_micro),
    must_change_password: row.must_change === 1,
    last_seen_at: formatTimeOrNull(seenAt),
  };
}
