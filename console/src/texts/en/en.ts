/** Every text of the console, in English. Counts come as numbers: each language has forms of its own. */
import { account } from './account.ts';
import { administration } from './administration.ts';
import { billing } from './billing.ts';
import { databases } from './databases.ts';
import { machines } from './machines.ts';
import { overview } from './overview.ts';
import { recovery } from './recovery.ts';
import { shell } from './shell.ts';
import { signIn } from './sign-in.ts';
import { storage } from './storage.ts';
import { uploads } from './uploads.ts';
import { webhooks } from './webhooks.ts';

export const en = {
  /** The language of the page, and of words that the browser makes: `3 minutes ago`. */
  locale: 'en',
  account,
  administration,
  billing,
  databases,
  signIn,
  machines,
  overview,
  recovery,
  shell,
  storage,
  uploads,
  webhooks,
};
