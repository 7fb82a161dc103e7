/** The texts of changes of many accounts, loaded with their page. */
import { manyAccounts } from './en/many-accounts.ts';

export const manyAccountsText = manyAccounts;
