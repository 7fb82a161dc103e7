/** Databases as passed to engines, for tests. */
import type { EngineDatabase } from '../databases/engine.ts';
import { randomBase62 } from '../platform/ids.ts';

let lastNumber = 0;

/** A database that does not exist yet. */
export function newDatabase(about: Partial<EngineDatabase> = {}): EngineDatabase {
  const random = randomBase62(16).toLowerCase();
  return {
    databaseId: `db-${random}`,
    number: ++lastNumber,
    accountId: 1,
    database: `d_${random}`,
    username: `u_${random}`,
    sizeLimitBytes: 64 * 2 ** 20,
    limits: { connections: 20, statementMs: 10_000 },
    ...about,
  };
}
