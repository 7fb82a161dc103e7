/** Writes the metadata of a data directory as SQL: `test:all` opens those of earlier versions. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';

const FOLDER = fileURLToPath(new URL('../../server/metadata/earlier', import.meta.url));

/** Stores it as `NUMBER-COMMIT.sql`, with the number of its newest migration. */
export function keepMetadata(dataDir: string, commit: string): void {
  const database = new DatabaseSync(join(dataDir, 'metadata.db'), { readOnly: true });
  try {
    const { newest } = database.prepare('SELECT max(number) AS newest FROM migrations').get() as {
      newest: number;
    };
    const name = `${String(newest).padStart(4, '0')}-${commit}.sql`;
    writeFileSync(join(FOLDER, name), `${textOf(database).join('\n')}\n`);
  } finally {
    database.close();
  }
}

/** Tables and rows first: triggers would add their own rows. */
function textOf(database: DatabaseSync): string[] {
  const parts = database
    .prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    .all() as { type: string; name: string; sql: string }[];
  const tables = parts.filter(({ type }) => type === 'table');
  const others = parts.filter(({ type }) => type !== 'table');
  return [
    ...tables.map(({ sql }) => `${sql};`),
    ...tables.flatMap(({ name }) => rowsOf(database, name)),
    ...others.map(({ sql }) => `${sql};`),
  ];
}

function rowsOf(database: DatabaseSync, table: string): string[] {
  const columns = database.prepare(`PRAGMA table_info(${table})`).all() as { name: string }[];
  const values = columns.map(({ name }) => `quote(${name})`).join(` || ', ' || `);
  return database
    .prepare(`SELECT ${values} AS row FROM ${table}`)
    .all()
    .map(({ row }) => `INSERT INTO ${table} VALUES (${row});`);
}
