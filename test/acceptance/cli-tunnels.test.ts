/** Remote databases, with the client. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { CliUser } from './cli-kit.ts';

const cloud = await CloudProcess.start();
const user = await CliUser.signedIn(cloud.api);
const api = (await CheckedClient.open(cloud.api)).as(user.key);
after(async () => {
  user.remove();
  await cloud.stop();
});

/** The client of a server that the cloud runs itself. */
const PSQL = globSync(
  join(import.meta.dirname, '../../build/programs/postgresql-*/usr/lib/postgresql/*/bin/psql'),
)[0];

const newDatabase = (name: string, engine: string) =>
  api.expect(201, '/api/databases', { json: { name, engine } });

test('the shell runs statements of databases whose client is not here', async () => {
  await newDatabase('files', 'sqlite');
  const input = 'CREATE TABLE t (a);\nINSERT INTO t VALUES\n(42);\nSELECT a FROM t;\n';
  assert.equal(await user.ok(['db', 'connect', 'files', '--builtin'], { input }), 'a\n42\n');
  assert.match(await user.fails(1, ['db', 'connect', 'files'], { input: 'SELECT nothing;' }), /syntax error/);
  const dump = [
    'PRAGMA foreign_keys=OFF;',
    'BEGIN TRANSACTION;',
    "CREATE TABLE notes (text TEXT DEFAULT 'a;b');",
    'CREATE TRIGGER kept AFTER INSERT ON notes BEGIN',
    '  INSERT INTO t VALUES (1);',
    'END;',
    "INSERT INTO notes VALUES('of two;",
    "lines');",
    'SAVEPOINT one; DELETE FROM notes; ROLLBACK TO one;',
    'CREATE TEMPORARY TABLE scratch AS SELECT count(*) AS n FROM notes;',
    'COMMIT;',
    'SELECT n FROM scratch;',
  ];
  assert.equal(await user.ok(['db', 'connect', 'files'], { input: dump.join('\n') }), 'n\n1\n');
  const halved = 'BEGIN;\nDELETE FROM notes;\nSELECT nothing;\nCOMMIT;\n';
  assert.match(await user.fails(1, ['db', 'connect', 'files'], { input: halved }), /rolled back/);
  assert.equal(
    await user.ok(['db', 'connect', 'files'], { input: 'SELECT count(*) AS n FROM notes;' }),
    'n\n1\n',
  );
  assert.equal(await user.ok(['db', 'connect', 'files'], { input: 'DELETE FROM t WHERE a = 1;' }), '');
  await newDatabase('documents', 'mongodb');
  const commands = '{"insert":"t","documents":[{"_id":1}]}\n{"find":"t"}\n';
  const ping = await user.run(['db', 'connect', 'documents', '--builtin'], { input: '{"ping":1}\n' });
  assert.deepEqual([ping.code, ping.stdout, ping.stderr], [0, '', 'done\n']);
  const found = await user.ok(['db', 'connect', 'documents', '--builtin', '--json'], { input: commands });
  assert.deepEqual(JSON.parse(found), { _id: 1 });
});

test('a dump goes to a file and comes back from it', async () => {
  await user.ok(['db', 'dump', 'files', 'files.dump']);
  await user.ok(['db', 'connect', 'files'], { input: 'DELETE FROM t;' });
  await user.fails(2, ['db', 'load', 'files', 'files.dump']);
  await user.ok(['db', 'load', 'files', 'files.dump', '--yes']);
  assert.equal(await user.ok(['db', 'connect', 'files'], { input: 'SELECT a FROM t;' }), 'a\n42\n');
});

test('psql comes in, and nobody sees the password among the arguments', {
  skip: PSQL === undefined ? NO_POSTGRESQL : false,
}, async () => {
  const { connection } = await newDatabase('shop', 'postgresql');
  const child = user.start(['db', 'connect', 'shop', '--', '-Atc', 'SELECT pg_sleep(2), 6 * 7'], {
    env: { PATH: `${dirname(String(PSQL))}:${process.env.PATH}` },
  });
  let out = '';
  child.stdout?.on('data', (piece) => {
    out += piece;
  });
  child.stderr?.on('data', (piece) => {
    out += piece;
  });
  child.stdin?.end();
  const lines = await eventually('psql', () => {
    const shown = commandLines().filter((line) => line.includes('pg_sleep'));
    return shown.some((line) => line.startsWith('psql') || line.includes('/psql')) ? shown : null;
  });
  assert.ok(lines.every((line) => !line.includes(connection.password)));
  const [code] = await once(child, 'close');
  assert.equal(code, 0, out);
  assert.equal(out, '|42\n');
});

/** Of all programs of this host. */
function commandLines(): string[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name)
        ? [readFileSync(`/proc/${name}/cmdline`, 'latin1').replaceAll('\0', ' ')]
        : [];
    } catch {
      return [];
    }
  });
}
