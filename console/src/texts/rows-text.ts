/** The texts of rows, loaded with their page. */
import { rows } from './en/rows.ts';

export const rowsText = rows;
