/** The mails with links, in plain words. */
import type { MailText } from '../../mail/outbox.ts';

interface LinkMail {
  readonly username: string;
  readonly url: string;
  /** Host name of the cloud. */
  readonly host: string;
}

/** `by`: the administrator; null: the account holder requested it. */
export function resetMail({ username, url, host, by }: LinkMail & { readonly by: string | null }): MailText {
  const who = by === null ? 'Somebody, probably you, asked' : `An administrator (${by}) asked`;
  return {
    subject: `A new password for ${username} at ${host}`,
    text: `${who} for a new password for the account ${username} at ${host}.
Set it with this link, which works once, within an hour:

${url}

The new password ends all sessions of the account. API keys keep working; replace them in
the console (Account) if somebody else may have them.

${by === null ? 'If you did not ask for it, ignore this mail: the password stays as it is.' : 'Until then the old password stays.'}
`,
  };
}

export function confirmationMail({ username, url, host }: LinkMail): MailText {
  return {
    subject: `Confirm your e-mail address for ${host}`,
    text: `The account ${username} at ${host} names this e-mail address.
If it is yours, confirm it with this link, within three days:

${url}

You can then reset a forgotten password by mail. If you do not know this account, ignore this mail.
`,
  };
}

interface InvitationMail {
  readonly url: string;
  readonly host: string;
  /** End of the link, UTC. */
  readonly expiresAt: string;
}

export function invitationMail({ url, host, expiresAt }: InvitationMail): MailText {
  return {
    subject: `An account for you at ${host}`,
    text: `You are invited to ${host}. This link creates your account, once, until ${expiresAt} UTC:

${url}

If you did not expect this mail, ignore it.
`,
  };
}

/** Someone requested a registration with an address that an account has confirmed. */
export function hasAccountMail({ username, url, host }: LinkMail): MailText {
  return {
    subject: `Your account at ${host}`,
    text: `Somebody, probably you, asked for an account at ${host} with this e-mail address.
You already have an account: ${username}. If you forgot its password:

${url}

If you did not ask for it, ignore this mail.
`,
  };
}
