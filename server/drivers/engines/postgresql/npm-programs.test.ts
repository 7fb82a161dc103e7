/** PostgreSQL from npm, which the set-up takes if there is no other: a server without its clients. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { DumpsMissing } from '../../../databases/engine.ts';
import { newDatabase } from '../../../testing/new-database.ts';
import { connect, postgresqlFixture } from '../../../testing/postgresql-fixture.ts';
import { findPrograms, missingOf } from './postgresql-programs.ts';

/** `scripts/setup.js test` fetches it. */
const FOLDER = fileURLToPath(new URL('../../../../build/test-programs', import.meta.url));
const skip = !existsSync(FOLDER) && 'npm could not be reached by the set-up, or has none for this machine';
const SECRET = 'aaaaaaaaaaaaaaaaaaaaaaaa';
const NOBODY_LEAVES = new AbortController().signal;
const ofNpm = (major: number | null, host: readonly string[] = []) =>
  findPrograms(major, { unpacked: FOLDER, host });

/** A folder of programs as on a host, which only report their version. */
function hostPrograms(parent: string, version: string): string {
  const bin = join(parent, version);
  mkdirSync(bin);
  for (const name of ['postgres', 'initdb', 'pg_dump', 'psql'])
    writeFileSync(join(bin, name), `#!/bin/sh\necho "${name} (PostgreSQL) ${version}"\n`, { mode: 0o755 });
  return bin;
}

test('programs of the host go before those of npm, unless the data are of another version', {
  skip,
}, async (t) => {
  const parent = mkdtempSync(join(tmpdir(), 'host-programs-'));
  t.after(() => rmSync(parent, { recursive: true }));
  const host = [hostPrograms(parent, '17.9'), hostPrograms(parent, '15.2')];
  const versionFor = async (major: number | null, of: readonly string[] = host) => {
    const found = await ofNpm(major, of);
    return 'version' in found ? [found.version, missingOf(found) === null] : found.reason;
  };
  assert.deepEqual(await versionFor(null), ['17.9', true]);
  assert.deepEqual(await versionFor(null, host.slice(1)), ['18.4', false], '15.2 is too old');
  assert.deepEqual(await versionFor(18), ['18.4', false]);
  assert.deepEqual(await versionFor(18, [hostPrograms(parent, '18.1')]), ['18.1', true]);
  assert.match(
    String(await versionFor(16)),
    /the data was created by PostgreSQL 16, which is no longer installed/,
  );
});

test('a database is made, used, restarted, limited and removed; what needs clients is refused', {
  skip,
}, async (t) => {
  const fixture = postgresqlFixture({ find: (major) => ofNpm(major) });
  t.after(fixture.close);
  const { engine } = fixture;
  const { available, reason, fix, extensions = [] } = await engine.readiness();
  assert.equal(available, true);
  assert.match(`${reason} ${fix}`, /without pg_dump.*OpenSSL 1\.1.*install PostgreSQL 18/);
  const database = newDatabase();
  await engine.provision(database, SECRET);
  const first = await connect(engine, database, SECRET);
  // Every offered extension can be created: its libraries are present.
  for (const name of extensions) await first.query(`CREATE EXTENSION IF NOT EXISTS "${name}" CASCADE`);
  assert.ok(extensions.includes('pgcrypto') && !extensions.includes('plperl'));
  await first.query('CREATE TABLE notes AS SELECT uuid_generate_v4() AS id');
  for (const refused of [
    () => engine.dump(database, 'sql', { signal: NOBODY_LEAVES }),
    () => engine.load(database, Readable.from([Buffer.from('SELECT 1;')]), { signal: NOBODY_LEAVES }),
    () => engine.fork(database, database, NOBODY_LEAVES),
  ])
    await assert.rejects(refused, DumpsMissing);
  await engine.close();

  const again = fixture.reopen();
  await again.wake();
  await again.rotate(database, SECRET.toUpperCase());
  await assert.rejects(connect(again, database, SECRET), { code: '28P01' });
  const second = await connect(again, database, SECRET.toUpperCase());
  assert.equal((await second.query('SELECT * FROM notes')).rowCount, 1);
  await again.restrict(database, 'read_only');
  await assert.rejects(second.query('DELETE FROM notes'), 'its session was ended');
  const third = await connect(again, database, SECRET.toUpperCase());
  await assert.rejects(third.query('INSERT INTO notes VALUES (NULL)'), { code: '25006' });
  assert.deepEqual(await again.list(), [database.database]);
  await again.drop(database.database);
  assert.deepEqual(await again.list(), []);
});

test('a database whose programs are gone is in trouble, unless its server still runs', {
  skip,
}, async (t) => {
  let areGone = false;
  const gone = { reason: 'its programs were not fetched', fix: 'run the set-up' };
  const fixture = postgresqlFixture({ find: async (major) => (areGone ? gone : ofNpm(major)) });
  t.after(fixture.close);
  const { engine } = fixture;
  const database = newDatabase();
  await engine.provision(database, SECRET);
  areGone = true;
  assert.equal((await engine.readiness()).available, false);
  assert.equal(engine.trouble(database), null, 'its server runs');
  const connection = await connect(engine, database, SECRET);
  assert.equal((await connection.query('SELECT 1')).rowCount, 1);
  await engine.close();

  const again = fixture.reopen();
  assert.equal(again.trouble(database), null, 'nothing is known yet');
  await again.readiness();
  const { code, message } = again.trouble(database) ?? {};
  assert.equal(code, 'engine_unavailable');
  assert.match(message ?? '', /^PostgreSQL is not available on this host: its programs were not fetched$/);
  areGone = false;
  await again.readiness();
  assert.equal(again.trouble(database), null);
});
