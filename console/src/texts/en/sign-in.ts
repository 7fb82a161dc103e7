/** Signing in and signing up; pages that links open have theirs in `pages/links.ts`. */
import { count } from './counted.ts';

export const signIn = {
  signIn: 'Sign in',
  signInLead: 'Welcome back.',
  again: 'Enter your password',
  againLead:
    'This action affects access to your account, and you gave your password more than 15 minutes ago.',
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
  closed: { invitation: 'You need an invitation', closed: 'Registration is closed' },
  closedLead: {
    invitation: 'Ask the administrator of this cloud for a link, and open it to create your account.',
    closed: 'Ask the administrator for an account.',
  },
  ask: {
    invitation: 'Ask the administrator of this cloud for an invitation.',
    closed: 'Ask the administrator of this cloud for an account.',
  },
  signUpLead: 'A new account starts with free credits.',
  username: 'User name',
  usernameRule: '3 to 64 characters: letters, digits, and . _ -',
  email: 'E-mail address',
  emailRule: 'You can also sign in with it.',
  forgot: 'Forgot your password?',
  forgotLead: 'Ask the administrator of this cloud for a link to set a new password.',
  forgotOperator: 'If you run this cloud, run this command on its host. It prints the link:',
  byDomain: {
    lead: (domains: readonly string[]) =>
      `With an e-mail address of ${domains.join(' or ')}. You get a mail with a link that creates your account.`,
    send: 'Send the link',
    sent: 'Check your mail',
    sentLead: (email: string) => `A link is on its way to ${email}. It can be used once, within a day.`,
  },
  haveAccount: 'Already have an account?',
  needsSetup: 'This cloud has no administrator yet',
  needsSetupLead: 'Run this command on the host. It prints a link to create one:',
};
