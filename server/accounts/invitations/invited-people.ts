/** Names and addresses in open invitations, which no other invitation can have. */
import type { FieldProblem } from '../../platform/errors.ts';
import { foldEmail, foldUsername } from '../account-fields.ts';
import type { InvitationRow } from './invitations-store.ts';

interface Person {
  readonly username?: string | undefined;
  readonly email?: string | undefined;
}

/** The problems of a person who is invited already. */
export function invitedOf(
  rows: readonly Pick<InvitationRow, 'username' | 'email'>[],
): (person: Person) => FieldProblem[] {
  const names = new Set(rows.flatMap(({ username }) => (username === null ? [] : [foldUsername(username)])));
  const emails = new Set(rows.flatMap(({ email }) => (email === null ? [] : [foldEmail(email)])));
  return ({ username, email }) => [
    ...(username !== undefined && names.has(foldUsername(username)) ? [invited('username')] : []),
    ...(email !== undefined && emails.has(foldEmail(email)) ? [invited('email')] : []),
  ];
}

const invited = (field: string): FieldProblem => ({
  field,
  message: 'is already in an open invitation: renew or revoke that one',
});
