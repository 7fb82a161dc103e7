/**
 * Every text of the console. A second language is a folder like en/ whose files have the types of these, and
 * a choice here.
 */
import { account } from './en/account.ts';
import { administration } from './en/administration.ts';
import { billing } from './en/billing.ts';
import { databases } from './en/databases.ts';
import { door } from './en/door.ts';
import { machines } from './en/machines.ts';
import { overview } from './en/overview.ts';
import { recovery } from './en/recovery.ts';
import { shell } from './en/shell.ts';
import { storage } from './en/storage.ts';
import { uploads } from './en/uploads.ts';
import { webhooks } from './en/webhooks.ts';

export const text = {
  /** For dates and numbers. */
  locale: 'en',
  account,
  administration,
  billing,
  databases,
  door,
  machines,
  overview,
  recovery,
  shell,
  storage,
  uploads,
  webhooks,
};
