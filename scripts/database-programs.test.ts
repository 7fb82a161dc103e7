import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { noApt, useArchive } from './test-archive.ts';

// With a name that tsc cannot follow: it is JavaScript, because an old Node runs it.
const { fetchDatabasePrograms, hasJustFailed, missingDatabasePrograms, NoPackages } = await import(
  new URL('./database-programs.js', import.meta.url).href
);
const DIRECTORY = mkdtempSync(join(tmpdir(), 'database-programs-'));
const outsidePath = '/usr/sbin:/usr/bin:/sbin:/bin';

after(() => rmSync(DIRECTORY, { recursive: true, force: true }));

function repository(name: string): string {
  const root = join(DIRECTORY, name);
  mkdirSync(root);
  return root;
}

const BIN = 'usr/lib/postgresql/17/bin';
const PACKAGES = [
  { name: 'postgresql', version: '17+300', depends: 'postgresql-17', files: {} },
  {
    name: 'postgresql-17',
    version: '17.4-1ubuntu2',
    depends: 'libpq5, libllvm19, libc6, postgresql-common',
    files: {
      [`${BIN}/postgres`]: 'server',
      'usr/lib/postgresql/17/lib/bitcode/x.bc': 'for a compiler',
      'usr/share/man/x.1': 'words',
      'etc/init.d/postgresql': 'a service',
    },
  },
  {
    name: 'postgresql-client-17',
    version: '17.4-1ubuntu2',
    depends: 'libpq5',
    files: { [`${BIN}/psql`]: 'client' },
  },
  { name: 'postgresql-common', files: { 'usr/bin/pg_wrapper': 'not taken' } },
  {
    name: 'libpq5',
    version: '17.4-1ubuntu2',
    depends: 'libldap2',
    files: { 'usr/lib/libpq.so.5': 'library' },
  },
  { name: 'libldap2', files: { 'usr/lib/libldap.so.2': 'library of a library' } },
  { name: 'libllvm19', files: { 'usr/lib/libLLVM.so': 'large' } },
  { name: 'libc6', files: { 'lib/libc.so.6': "the host's" } },
];

test('programs and their libraries are unpacked, whatever the major version, and nothing else', {
  skip: noApt,
}, (t) => {
  const root = repository('fetched');
  useArchive(t, DIRECTORY, PACKAGES);
  assert.deepEqual(missingDatabasePrograms(root), ['postgresql', 'mariadb']);
  assert.equal(fetchDatabasePrograms({ root, outsidePath, name: 'postgresql' }), '17.4');
  assert.deepEqual(missingDatabasePrograms(root), ['mariadb']);
  const output = join(root, 'build/programs');
  assert.deepEqual(readdirSync(output), ['postgresql-17.4']);
  const files = readdirSync(join(output, 'postgresql-17.4'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
  assert.deepEqual(files.sort(), ['libldap.so.2', 'libpq.so.5', 'postgres', 'psql']);
});

test('pgvector comes along where the distribution has it', { skip: noApt }, (t) => {
  const root = repository('trixie');
  const extensions = 'usr/share/postgresql/17/extension';
  const pgvector = {
    name: 'postgresql-17-pgvector',
    version: '0.8.0-1',
    depends: 'postgresql-17, libc6',
    files: { [`${extensions}/vector.control`]: '', 'usr/lib/postgresql/17/lib/vector.so': '' },
  };
  useArchive(t, join(DIRECTORY, 'with-pgvector'), [...PACKAGES, pgvector]);
  assert.equal(fetchDatabasePrograms({ root, outsidePath, name: 'postgresql' }), '17.4');
  const tree = join(root, 'build/programs/postgresql-17.4');
  for (const path of [...Object.keys(pgvector.files), `${BIN}/postgres`])
    assert.ok(existsSync(join(tree, path)));
});

test('packages that are too old are not fetched', { skip: noApt }, (t) => {
  const root = repository('ubuntu');
  const old = PACKAGES.map((one) => ({ ...one, version: one.version?.replace('17.4', '15.9') }));
  useArchive(
    t,
    join(DIRECTORY, 'old'),
    old.map(({ version, ...one }) => (version ? { ...one, version } : one)),
  );
  assert.throws(
    () => fetchDatabasePrograms({ root, outsidePath, name: 'postgresql' }),
    (error: Error) => {
      assert.ok(error instanceof NoPackages);
      assert.match(
        error.message,
        /^the newest package is PostgreSQL 15\.9, but 15\.19 or newer is required$/,
      );
      return true;
    },
  );
  assert.deepEqual(readdirSync(join(root, 'build/programs')), ['postgresql.problem.json']);
});

test('a host without apt is told so, once an hour at most, and nothing half-made is left', () => {
  const root = repository('fedora');
  const name = 'postgresql';
  assert.equal(hasJustFailed(root, name), false);
  assert.throws(
    () => fetchDatabasePrograms({ root, outsidePath: DIRECTORY, name }),
    (error: Error) => {
      assert.ok(error instanceof NoPackages);
      assert.equal(error.message, 'this host has no apt-get');
      return true;
    },
  );
  const note = join(root, 'build/programs/postgresql.problem.json');
  assert.match(JSON.parse(readFileSync(note, 'utf8')).fix, /on Debian 12, Ubuntu 24.04 or newer/);
  assert.deepEqual(readdirSync(join(root, 'build/programs')), ['postgresql.problem.json']);
  assert.equal(hasJustFailed(root, name), true);
  const before = new Date(Date.now() - 2 * 3_600_000);
  utimesSync(note, before, before);
  assert.equal(hasJustFailed(root, name), false);
  assert.deepEqual(missingDatabasePrograms(root), [name, 'mariadb']);
  assert.ok(existsSync(note));
});
