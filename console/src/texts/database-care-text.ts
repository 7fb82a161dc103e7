/** The texts of what is done with a whole database, loaded with its page. */
import { databaseCare } from './en/databases/database-care.ts';

export const databaseCareText = databaseCare;
