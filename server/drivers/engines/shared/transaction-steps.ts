/** Steps of a transaction, the same in PostgreSQL and MariaDB. */
import type { Step } from '../../managed-server/accounts/tenant-queries.ts';

export const STEPS: Readonly<Record<Step, string>> = {
  begin: 'BEGIN',
  commit: 'COMMIT',
  rollback: 'ROLLBACK',
  save: 'SAVEPOINT saved',
  keep: 'RELEASE SAVEPOINT saved',
  undo: 'ROLLBACK TO SAVEPOINT saved',
};
