/** The texts of the query page, loaded with it. */
import { queries } from './en/databases/queries.ts';

export const queriesText = queries;
