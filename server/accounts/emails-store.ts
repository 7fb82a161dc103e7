/** SQL of confirmed e-mail addresses, and of the subjects that an account gets mail about. */
import type { Statement } from '../metadata/metadata.ts';
import { foldEmail } from './account-fields.ts';

/** Takes the address from an account that has not confirmed it. */
export function releaseUnconfirmed(folded: string, ownId: number): Statement {
  return {
    sql: `UPDATE accounts SET email_folded = NULL
      WHERE email_folded = ? AND id <> ? AND email_verified_at IS NULL AND closed_at IS NULL`,
    params: [folded, ownId],
  };
}

/**
 * Refused if the account has changed its address, or is not active. Conflicts with an account that has
 * confirmed it.
 */
export function confirmEmail(id: number, email: string, at: number): Statement {
  return {
    sql: `UPDATE accounts SET email_folded = ?, email_verified_at = ?
      WHERE id = ? AND email = ? AND is_active = 1 AND closed_at IS NULL`,
    params: [foldEmail(email), at, id, email],
    expectChanges: 1,
  };
}

/** `about`: names separated by commas; empty: none. */
export function setMailAbout(id: number, about: string): Statement {
  return {
    sql: 'UPDATE accounts SET mail_about = ? WHERE id = ? AND closed_at IS NULL',
    params: [about, id],
    expectChanges: 1,
  };
}

/** A different address is not confirmed yet; one that differs only in case is. `claimed`: see claimOf(). */
export function setEmail(
  id: number,
  to: { readonly email: string; readonly claimed: string | null },
): Statement {
  return {
    sql: `UPDATE accounts SET email_verified_at = CASE WHEN email_folded = ? THEN email_verified_at END,
      email = ?, email_folded = ? WHERE id = ? AND closed_at IS NULL`,
    params: [to.claimed, to.email, to.claimed, id],
    expectChanges: 1,
  };
}
