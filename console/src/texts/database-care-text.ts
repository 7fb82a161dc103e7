/** The texts of actions on a whole database, loaded with its page. */
import { databaseCare } from './en/databases/database-care.ts';

export const databaseCareText = databaseCare;
