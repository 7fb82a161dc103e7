/** The texts of lists, loaded with the pages that have one. */
import { lists } from './en/lists.ts';

export const listsText = lists;
