/** Metadata in a new directory, for the start of tests. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DATABASE_FILE, openWriter } from '../drivers/metadata-sqlite/connection.ts';
import { SqliteMetadata, type SqliteMetadataDeps } from '../drivers/metadata-sqlite/sqlite-metadata.ts';
import { migrate } from '../metadata/migrate.ts';
import { migrations } from '../metadata/migrations/migrations.ts';

let migrated: Buffer | undefined;

/** The file of a database after all migrations. */
function migratedFile(): Buffer {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-migrated-'));
  try {
    const database = openWriter(directory);
    migrate(database, migrations, 0);
    database.close();
    return readFileSync(join(directory, DATABASE_FILE));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/**
 * Like SqliteMetadata.open(), but a new database starts as a copy of one that was migrated in this process:
 * the migrations take as long as the rest of opening it, and most tests open one.
 */
export function openTestMetadata(deps: SqliteMetadataDeps): Promise<SqliteMetadata> {
  const path = join(deps.directory, DATABASE_FILE);
  if (!existsSync(path)) {
    migrated ??= migratedFile();
    mkdirSync(deps.directory, { recursive: true, mode: 0o700 });
    writeFileSync(path, migrated, { mode: 0o600 });
  }
  return SqliteMetadata.open(deps);
}
