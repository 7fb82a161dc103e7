/** Signing in and signing up. */
import { count, counted } from './counted.ts';

export const signIn = {
  signIn: 'Sign in',
  signInLead: 'Welcome back.',
  again: 'Enter your password',
  againLead:
    'This shows or changes what gives access to your account. You gave your password more than 15 minutes ago.',
  goOn: 'Continue',
  ended: 'Your session ended',
  endedLead: 'Sign in to continue. Your input on this page has been kept.',
  replaced: 'Your browser’s session was replaced',
  replacedLead:
    'Its cookie was changed or removed. A web page behind another port of this host, such as a published port of a machine, can do that. It gained no access to your account.',
  uploadsWait: (files: number) =>
    files === 1
      ? 'One file has not been uploaded yet. It will be uploaded when you sign in. Keep this page open until then.'
      : `${count(files)} files have not been uploaded yet. They will be uploaded when you sign in. Keep this page open until then.`,
  name: 'User name or e-mail address',
  password: 'Password',
  passwordRule: '8 to 256 characters of any kind.',
  noAccount: 'No account yet?',
  signUp: 'Create an account',
  closed: { invitation: 'You need an invitation', closed: 'This cloud takes no registrations' },
  closedLead: {
    invitation: 'Ask the administrator of this cloud for a link, and open it to create your account.',
    closed: 'Ask its administrator for an account.',
  },
  ask: {
    invitation: 'Ask the administrator of this cloud for an invitation.',
    closed: 'Ask the administrator of this cloud for one.',
  },
  signUpLead: 'A new account starts with free credits.',
  username: 'User name',
  usernameRule: '3 to 64 characters: letters, digits, and . _ -',
  email: 'E-mail address',
  emailRule: 'You can also sign in with it.',
  forgot: 'Forgot your password?',
  forgotLead: 'Ask the administrator of this cloud for a link to set a new one.',
  forgotOperator: 'If you run this cloud, run this command on its host. It prints the link:',
  forgotten: {
    lead: 'You get a mail with a link to set a new one.',
    send: 'Send the link',
    sent: 'Look into your mailbox',
    sentLead: (email: string) => `If an account has confirmed ${email}, a link is on its way there.`,
    sentNote:
      'It can be used once, within an hour. If no mail comes, ask the administrator of this cloud for a link.',
  },
  byDomain: {
    lead: (domains: readonly string[]) =>
      `With an e-mail address of ${domains.join(' or ')}. You get a mail with a link that creates your account.`,
    send: 'Send the link',
    sent: 'Look into your mailbox',
    sentLead: (email: string) => `A link is on its way to ${email}. It can be used once, within a day.`,
  },
  confirm: {
    title: 'Confirm your e-mail address',
    lead: 'A forgotten password is then set anew by mail.',
    confirm: 'Confirm',
    done: 'The address is confirmed',
    doneLead: (email: string, name: string) => `${email} is the address of ${name}.`,
    incomplete: 'This link is incomplete',
    incompleteLead: 'Open it again from your mail. If you have used it already, all is done.',
    goOn: 'Open the console',
  },
  haveAccount: 'Already have an account?',
  needsSetup: 'This cloud has no administrator yet',
  needsSetupLead: 'Run this command on the host. It prints a link to create one:',
  reset: {
    title: 'Set a new password',
    lead: 'The link that you opened can be used once.',
    incomplete: 'This link is incomplete',
    incompleteLead:
      'Open it again from where you received it. If you have used it already, sign in with your new password.',
    password: 'New password',
    again: 'New password, again',
    differ: 'The passwords differ.',
    linkEnded: 'If you set a password with this link, sign in with it. Otherwise ask for another link.',
    save: 'Set password',
    done: 'The password is set',
    doneLead: (name: string) => `You are signed in as ${name}.`,
    signIn: (name: string) => `Sign in with it as ${name}.`,
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
    endedLead: 'It was used or revoked, or it has expired.',
    incomplete: 'This link is incomplete',
    incompleteLead: 'Open it again from where you received it. If you have used it already, sign in.',
  },
  connect: {
    title: 'Let a program sign in?',
    lead: 'It gets its own access key, which you can revoke at any time.',
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
    close: 'You can close this window. The program says more.',
    keys: 'Show my access keys',
  },
};
