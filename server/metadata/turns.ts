/**
 * Commits that wait for each other. A statement that counts rows, or looks for one, and refuses by what it
 * finds is safe while one process writes. Of two nodes on PostgreSQL neither sees what the other has not
 * committed: both must change a common row before, and each statement then sees what the earlier one stored.
 */
import type { Statement } from './metadata.ts';

const KEYS = { accounts: 'id', buckets: 'id', plans: 'name' } as const;

/** Put before the deciding statement. Changes no row if the key does not exist. */
export function turnAt(table: keyof typeof KEYS, key: number | string): Statement {
  const column = KEYS[table];
  return { sql: `UPDATE ${table} SET ${column} = ${column} WHERE ${column} = ?`, params: [key] };
}
