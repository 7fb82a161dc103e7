/** The query page, but for what it shares with others. */
import { count } from './counted.ts';

export const queries = {
  pages: 'Pages of the result',
  previous: 'Previous page',
  next: 'Next page',
  range: (from: number, to: number) => `Rows ${count(from)} to ${count(to)}`,
  again: 'The query runs again for each page: give it an ORDER BY.',
};
