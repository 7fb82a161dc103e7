/** All migrations of the schema, in order. Append only: a released migration is never edited. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { CODE_FOLDER } from '../../platform/program-files.ts';

export interface Migration {
  /** 1, 2, 3, … without gaps. */
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

const FOLDER = join(CODE_FOLDER, 'metadata/migrations');

/** The migrations of SQLite. */
export const migrations = migrationsIn(FOLDER);

/** PostgreSQL has: the schema as of migration 21, then a text for each later migration of SQLite. */
export const postgresqlMigrations = migrationsIn(join(FOLDER, 'postgresql'));

/** `0012-free-plan-databases.sql`. The checksum excludes the comment at its top. */
function migrationsIn(directory: string): readonly Migration[] {
  const files = readdirSync(directory).filter((file) => file.endsWith('.sql'));
  return files.sort().map((file) => ({
    number: Number(file.slice(0, 4)),
    name: file.slice(5, -'.sql'.length).replaceAll('-', ' '),
    sql: readFileSync(`${directory}/${file}`, 'utf8').replace(/^(?:--.*\n)+/, ''),
  }));
}
