/** Shared by the tests of databases. */
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { NO_MARIADB, NO_POSTGRESQL } from '../../scripts/installed.ts';
import type { CheckedClient } from '../harness/checked-client.ts';

export const DATABASES = '/api/databases';
export const DELETE = { method: 'DELETE' };
export const POST = { method: 'POST' };

/** Whether connections on this host go directly to servers, so that they survive a kill of Cloudlet. */
export const GOES_STRAIGHT =
  process.getuid?.() === 0 && spawnSync('nft', ['list', 'tables'], { stdio: 'ignore' }).status === 0;

const PROGRAMS: Readonly<Record<string, readonly [program: string, missing: string]>> = {
  postgresql: ['postgresql', NO_POSTGRESQL],
  mysql: ['mariadb', NO_MARIADB],
};

/**
 * Why the engine cannot run here, or false. Not what a cloud answers: an engine that is broken would
 * skip its tests.
 */
export function noServerOf(engine: string): string | false {
  const [program, missing] = PROGRAMS[engine] ?? [];
  if (program === undefined || missing === undefined) return false;
  return globSync(`build/programs/${program}-*/usr`).length > 0 ? false : missing;
}

let databases = 0;

/** The path of a new database, with these fields. */
export async function newDatabase(user: CheckedClient, ...statements: readonly string[]): Promise<string> {
  const made = await user.expect(201, DATABASES, { json: { name: `d${++databases}` } });
  const path = `${DATABASES}/${made.database_id}`;
  for (const statement of statements) await run(user, path, statement);
  return path;
}

/** The answer to a statement that may write. */
export function run(user: CheckedClient, path: string, statement: string) {
  return user.expect(200, `${path}/query`, { json: { statement, read_only: false } });
}

/** The rows returned by a statement. */
export async function rowsOf(user: CheckedClient, path: string, statement: string): Promise<unknown[][]> {
  return (await user.expect(200, `${path}/query`, { json: { statement } })).rows;
}

/** The bytes of an SQLite file with this content, created by a program that opens files. */
export function sqliteFile(...statements: readonly string[]): Buffer<ArrayBuffer> {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  try {
    const file = new DatabaseSync(join(folder, 'file.db'));
    for (const statement of statements) file.exec(statement);
    file.close();
    return readFileSync(join(folder, 'file.db')) as Buffer<ArrayBuffer>;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A form with that file. */
export function formOf(bytes: Buffer<ArrayBuffer>, field = 'file'): FormData {
  const form = new FormData();
  form.set(field, new Blob([bytes]), 'shop.db');
  return form;
}
