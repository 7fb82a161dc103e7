/** Pages that links open, and the one that sends such a link. */
import { counted } from '../counted.ts';

export const links = {
  forgotten: {
    lead: 'You get a mail with a link to set a new password.',
    send: 'Send the link',
    sent: 'Check your mail',
    sentLead: (email: string) => `If ${email} is confirmed for an account, a link is on its way.`,
    sentNote:
      'It can be used once, within an hour. If no mail comes, ask the administrator of this cloud for a link.',
  },
  confirm: {
    title: 'Confirm your e-mail address',
    lead: 'You can then reset your password by mail.',
    confirm: 'Confirm',
    done: 'The address is confirmed',
    doneLead: (email: string, name: string) => `${email} is the address of ${name}.`,
    incomplete: 'This link is incomplete',
    incompleteLead:
      'Open the link again from your mail. If you have already used it, no further step is needed.',
    goOn: 'Open the console',
  },
  reset: {
    title: 'Set a new password',
    lead: 'The link that you opened can be used once.',
    incomplete: 'This link is incomplete',
    incompleteLead:
      'Open the link again where you received it. If you have already used it, sign in with your new password.',
    password: 'New password',
    again: 'New password, again',
    differ: 'The passwords differ.',
    linkEnded:
      'If you set a password with this link, sign in with that password. Otherwise ask for another link.',
    save: 'Set password',
    done: 'The password is set',
    doneLead: (name: string) => `You are signed in as ${name}.`,
    signIn: (name: string) => `Sign in as ${name} with the new password.`,
    ended: (sessions: number) =>
      sessions === 0
        ? 'There were no sessions to end.'
        : `${counted(sessions, 'session was', 'sessions were')} ended.`,
    kept: (keys: number) =>
      keys === 0
        ? 'The account has no API keys.'
        : `${counted(keys, 'API key still works', 'API keys still work')}. If someone else may know one, revoke it.`,
    showKeys: 'Show API keys',
    goOn: 'Open the console',
  },
  join: {
    title: 'Create your account',
    lead: 'You were invited to this cloud. Choose a password that only you know.',
    named: 'Your user name:',
    until: (time: string) => `The account is open until ${time} (UTC).`,
    join: 'Create account',
    ended: 'This invitation does not work',
    endedLead: 'The invitation was used or revoked, or has expired.',
    incomplete: 'This link is incomplete',
    incompleteLead: 'Open the link again where you received it. If you have used the link already, sign in.',
  },
  connect: {
    title: 'Let a program sign in?',
    lead: 'The program gets its own access key, which you can revoke at any time.',
    incomplete:
      'This address is incomplete. Run the program again, and open the whole address that it prints.',
    haveCode: 'Enter a code instead',
    codeTitle: 'Enter the code',
    codeLead: 'The program that you started shows a code.',
    code: 'Code',
    go: 'Continue',
    program: 'Calls itself',
    address: 'Address',
    account: 'Signs in as',
    all: 'It will have all the rights of your account.',
    allAdmin: 'It will have all the rights of your account, including those of an administrator.',
    term: 'The key expires',
    sureLocal: 'Allow this only if you started it on this computer just now.',
    sureRemote:
      'Allow this only if you started it yourself just now. If someone else sent you the code, refuse.',
    refuse: 'Refuse',
    allow: 'Allow',
    done: 'The program is signed in',
    refused: 'The program was refused',
    failed: 'The program is not signed in',
    close: 'You can close this window. See the program for details.',
    keys: 'Show my access keys',
  },
};
