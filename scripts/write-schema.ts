/** Writes server/metadata/schema.sql: the result of all migrations. Run it after adding one. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openWriter } from '../server/drivers/metadata-sqlite/connection.ts';
import { migrate, renderSchema } from '../server/metadata/migrate.ts';
import { migrations } from '../server/metadata/migrations/migrations.ts';

const directory = mkdtempSync(join(tmpdir(), 'cloudlet-schema-'));
const database = openWriter(directory);
try {
  migrate(database, migrations, 0);
  writeFileSync(new URL('../server/metadata/schema.sql', import.meta.url), renderSchema(database));
} finally {
  database.close();
  rmSync(directory, { recursive: true });
}
