/** The texts of rows, loaded with their page. */
import { rows } from './en/databases/rows.ts';

export const rowsText = rows;
