/** Signing in and signing up. */
import { count } from './counted.ts';

export const door = {
  signIn: 'Sign in',
  signInLead: 'Welcome back.',
  ended: 'Your session ended',
  endedLead: 'Sign in to go on where you were. What you typed on this page is still there.',
  uploadsWait: (files: number) =>
    files === 1
      ? 'One file is not uploaded yet. It is sent when you sign in; until then, keep this page open.'
      : `${count(files)} files are not uploaded yet. They are sent when you sign in; until then, keep this page open.`,
  name: 'User name or e-mail address',
  password: 'Password',
  passwordRule: '8 to 256 characters of any kind.',
  noAccount: 'No account yet?',
  signUp: 'Create an account',
  signUpLead: 'A new account starts with free credits.',
  username: 'User name',
  usernameRule: '3 to 64 characters: letters, digits, and . _ -',
  email: 'E-mail address',
  emailRule: 'You can sign in with it too. Cloudlet sends no mail.',
  haveAccount: 'Have an account already?',
  needsSetup: 'This cloud has no administrator yet',
  needsSetupLead: 'On the machine itself, run this. It prints a link that makes one:',
};
