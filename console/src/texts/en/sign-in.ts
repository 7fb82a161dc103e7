/** Signing in and signing up. */
import { count } from './counted.ts';

export const signIn = {
  signIn: 'Sign in',
  signInLead: 'Welcome back.',
  ended: 'Your session ended',
  endedLead: 'Sign in to continue. Your input on this page has been kept.',
  uploadsWait: (files: number) =>
    files === 1
      ? 'One file has not been uploaded yet. It will be uploaded when you sign in. Keep this page open until then.'
      : `${count(files)} files have not been uploaded yet. They will be uploaded when you sign in. Keep this page open until then.`,
  name: 'User name or e-mail address',
  password: 'Password',
  passwordRule: '8 to 256 characters of any kind.',
  noAccount: 'No account yet?',
  signUp: 'Create an account',
  signUpLead: 'A new account starts with free credits.',
  username: 'User name',
  usernameRule: '3 to 64 characters: letters, digits, and . _ -',
  email: 'E-mail address',
  emailRule: 'You can also sign in with it. Cloudlet does not send e-mail.',
  haveAccount: 'Already have an account?',
  needsSetup: 'This cloud has no administrator yet',
  needsSetupLead: 'Run this command on the host. It prints a link to create one:',
};
