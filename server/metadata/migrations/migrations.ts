/** All migrations of the schema, in order. Append only: a released migration is never edited. */
import { readdirSync, readFileSync } from 'node:fs';

export interface Migration {
  /** 1, 2, 3, … without gaps. */
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

/** `0012-free-plan-databases.sql`. The comment at its top may change; its checksum is that of the rest. */
export const migrations: readonly Migration[] = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.sql'))
  .sort()
  .map((file) => ({
    number: Number(file.slice(0, 4)),
    name: file.slice(5, -'.sql'.length).replaceAll('-', ' '),
    sql: readFileSync(`${import.meta.dirname}/${file}`, 'utf8').replace(/^(?:--.*\n)+/, ''),
  }));
