/** The SQLite that is compiled into the driver, asked without touching any data. */
import Database from 'better-sqlite3';
import { assertSqliteVersion } from './connection.ts';

/** Its version, such as `3.51.3`. Throws when that is older than what is safe here. */
export function checkedSqliteVersion(): string {
  const database = new Database(':memory:');
  try {
    const version = String(database.prepare('SELECT sqlite_version()').pluck().get());
    assertSqliteVersion(version);
    return version;
  } finally {
    database.close();
  }
}
