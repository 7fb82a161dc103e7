/** Signing in and signing up. */
import { count } from './counted.ts';

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
  signUpLead: 'A new account starts with free credits.',
  username: 'User name',
  usernameRule: '3 to 64 characters: letters, digits, and . _ -',
  email: 'E-mail address',
  emailRule: 'You can also sign in with it. Cloudlet does not send e-mail.',
  haveAccount: 'Already have an account?',
  needsSetup: 'This cloud has no administrator yet',
  needsSetupLead: 'Run this command on the host. It prints a link to create one:',
  connect: {
    title: 'Let a program sign in?',
    lead: 'It gets an access key of its own, which you can revoke at any time.',
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
    sureRemote: 'Allow this only if you started it yourself just now. If somebody sent you the code, refuse.',
    refuse: 'Refuse',
    allow: 'Allow',
    done: 'The program is signed in',
    refused: 'The program was refused',
    failed: 'The program is not signed in',
    close: 'You can close this window. The program says more.',
    keys: 'Show my access keys',
  },
};
