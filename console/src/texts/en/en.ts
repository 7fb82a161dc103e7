/**
 * The texts of the first load, in English; those of single pages are in `pages/`. Counts are passed as
 * numbers, because languages have different plural forms.
 */
import { account } from './account.ts';
import { administration } from './administration.ts';
import { billing } from './billing.ts';
import { databases } from './databases/databases.ts';
import { machines } from './machines.ts';
import { recovery } from './recovery.ts';
import { shell } from './shell.ts';
import { signIn } from './sign-in.ts';
import { storage } from './storage/storage.ts';
import { uploads } from './storage/uploads.ts';
import { webhooks } from './webhooks.ts';

export const en = {
  /** The language of the page, and of texts formatted by the browser: `3 minutes ago`. */
  locale: 'en',
  account,
  administration,
  billing,
  databases,
  signIn,
  machines,
  recovery,
  shell,
  storage,
  uploads,
  webhooks,
};
