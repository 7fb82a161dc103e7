import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

// With a name that tsc cannot follow: it is JavaScript, because an old Node runs it.
const { trustExtensions } = await import(new URL('./trusted-extensions.js', import.meta.url).href);

const REVOKE = 'REVOKE ALL ON FUNCTION pg_stat_statements_reset(Oid, Oid, bigint) FROM PUBLIC;';
const FILES = {
  'pg_stat_statements.control': "default_version = '1.10'",
  'pg_stat_statements--1.6--1.7.sql': `${REVOKE}\n`,
  'vector.control': "default_version = '0.4.1'\ntrusted = true\n",
  'dblink.control': "default_version = '1.2'\n",
};

test('extensions are trusted in every unpacked PostgreSQL, once, and no others', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'trusted-extensions-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const directories = [
    'postgresql-15.20/usr/share/postgresql/15/extension',
    'postgresql-18.4/usr/lib/postgresql/18/share/postgresql/extension',
  ].map((directory) => join(folder, directory));
  for (const directory of directories) {
    mkdirSync(directory, { recursive: true });
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(directory, name), text);
  }
  mkdirSync(join(folder, 'mariadb-10.11.19'));
  for (let times = 0; times < 2; times++) {
    trustExtensions(folder);
    for (const directory of directories) {
      const read = (name: string) => readFileSync(join(directory, name), 'utf8');
      assert.equal(read('pg_stat_statements.control'), "default_version = '1.10'\ntrusted = true\n");
      assert.equal(
        read('pg_stat_statements--1.6--1.7.sql'),
        `${REVOKE}\nGRANT EXECUTE ON FUNCTION pg_stat_statements_reset(Oid, Oid, bigint) TO @extowner@;\n`,
      );
      for (const name of ['vector.control', 'dblink.control'] as const) assert.equal(read(name), FILES[name]);
      assert.deepEqual(readdirSync(directory).sort(), Object.keys(FILES).sort());
    }
  }
  trustExtensions(join(folder, 'nothing'));
});
