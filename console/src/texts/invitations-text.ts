/** The texts of invitations, loaded with their page. */
import { invitations } from './en/invitations.ts';

export const invitationsText = invitations;
