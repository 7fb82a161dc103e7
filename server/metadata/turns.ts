/**
 * Commits that wait for each other. A statement that counts or finds rows, and refuses depending on
 * the result, is safe while one process writes. On PostgreSQL, neither of two nodes sees
 * uncommitted rows of the other: both must first change a common row, so that each statement sees
 * the earlier one's rows.
 */
import type { Statement } from './metadata.ts';

const KEYS = { accounts: 'id', buckets: 'id', plans: 'name' } as const;

/** Place it before the deciding statement. Changes no row if the key does not exist. */
export function turnAt(table: keyof typeof KEYS, key: number | string): Statement {
  const column = KEYS[table];
  return { sql: `UPDATE ${table} SET ${column} = ${column} WHERE ${column} = ?`, params: [key] };
}
