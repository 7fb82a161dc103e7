/**
 * Holders of e-mail addresses. An account holds its address, so that it can log in with it. With
 * mail, an account that confirms an address by a link takes it from an account that has not, so
 * nobody can occupy another person's address.
 */
import { AppError } from '../platform/errors.ts';
import { foldEmail } from './account-fields.ts';
import type { AccountStore } from './store.ts';

export interface EmailClaimsDeps {
  readonly store: AccountStore;
  /** Whether this cloud sends mail, which confirms addresses. */
  readonly sendsMail: boolean;
}

/**
 * The folded address that an account may hold now, or null: an account that has not confirmed it
 * holds it until this one does. Throws `email_taken`. `ownId`: the account; 0: a new one.
 */
export async function claimOf(deps: EmailClaimsDeps, email: string, ownId = 0): Promise<string | null> {
  const { store, sendsMail } = deps;
  const folded = foldEmail(email);
  const holder = await store.accountByEmail(folded);
  if (holder === undefined || holder.id === ownId) return folded;
  if (sendsMail && holder.email_verified_at === null) return null;
  const fields = [{ field: 'email', message: 'is taken' }];
  throw new AppError('email_taken', 'This e-mail address is taken', { fields });
}
