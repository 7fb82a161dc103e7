/** Lists: filter, order, selection, and one action for many. */
import { count, counted } from './counted.ts';

const keys = (value: number) => counted(value, 'access key');
const webhooks = (value: number) => counted(value, 'webhook');
const databases = (value: number) => counted(value, 'database');

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
  typeCount: (value: number) => `Type ${value} to confirm`,
  columns: 'Columns',
  keys: {
    say: keys,
    button: 'Revoke',
    title: (value: number) => `Revoke ${keys(value)}?`,
    lead: 'These keys, and share links created with them, stop working immediately.',
    action: (value: number) => `Revoke ${keys(value)}`,
  },
  webhooks: {
    say: webhooks,
    button: 'Delete',
    title: (value: number) => `Delete ${webhooks(value)}?`,
    lead: 'Their pending deliveries are dropped.',
    action: (value: number) => `Delete ${webhooks(value)}`,
  },
  databases: {
    say: databases,
    button: 'Delete',
    title: (value: number) => `Delete ${databases(value)}?`,
    lead: 'All their connections are closed immediately. You can restore the databases for a limited time.',
    action: (value: number) => `Delete ${databases(value)}`,
  },
};
