/** Rows as the API shows them. */
import { formatTime, formatTimeOrNull } from '../clock.ts';
import { toCredits } from './credits.ts';
import type { Account, AdminAccount, Registration } from './schema.ts';
import type { AccountRow } from './store.ts';

/** `apiKey`: null when the caller may not see it. */
export function describeAccount(row: AccountRow, apiKey: string | null): Account {
  return {
    id: row.id,
    username: row.username,
    email: row.email,
    api_key: apiKey,
    plan: row.plan,
    credits: toCredits(row.credits_micro),
    is_active: row.is_active === 1,
    created_at: formatTime(row.created_at),
    last_login: formatTimeOrNull(row.last_login),
    is_admin: row.is_admin === 1,
  };
}

/** Exactly the members of contract §3. */
export function describeRegistration({ is_admin: _, ...registration }: Account): Registration {
  return registration;
}

export function describeForAdmin(row: AccountRow): AdminAccount {
  const { api_key: _, ...account } = describeAccount(row, null);
  return {
    ...account,
    suspended_reason: row.suspended_reason,
    storage_bytes: Number(row.storage_bytes),
  };
}
