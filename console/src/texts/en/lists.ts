/** Lists: filter, order, selection, and one action for many. */
import { count } from './counted.ts';

export const lists = {
  filter: 'Filter',
  shown: (shown: number, all: number) => (shown === all ? count(all) : `${count(shown)} of ${count(all)}`),
  noneFound: 'Nothing matches the filter.',
  clear: 'Clear filter',
  dense: 'Dense rows',
  more: (rows: number) => `Show ${count(rows)} more`,
  sortBy: (column: string) => `Sort by ${column}`,
  selectOne: (name: string) => `Select ${name}`,
  selectAll: (value: number) => `Select all ${count(value)}`,
  selected: (rows: string) => `${rows} selected`,
  progress: 'Progress',
  outcome: (done: number, failed: number, all: number) =>
    failed === 0 ? `${done} of ${all} done` : `${done} of ${all} done, ${failed} refused`,
  done: 'done',
  andMore: (rows: number) => `and ${count(rows)} more`,
  again: 'Try the rest again',
  close: 'Close',
};
