/** `cloudlet recovery compare`: a restored directory equals its point, or the differences are listed. */
import assert from 'node:assert/strict';
import { cpSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { CloudProcess } from '../harness/cloud-process.ts';
import { runCloudlet } from '../harness/command.ts';
import { blobFiles } from '../harness/waiting.ts';
import { newDatabase } from './databases-kit.ts';
import { LosableCloud } from './recovery-kit.ts';

let lost: LosableCloud;
let restored: string;
let copies = 0;

before(async () => {
  lost = await LosableCloud.start();
  await lost.user.expect(201, '/api/buckets', { json: { name: 'files' } });
  for (const name of ['one', 'two']) await lost.user.upload('files', name, Buffer.alloc(1_500_000, name));
  await newDatabase(lost.user, 'CREATE TABLE t (x)', 'INSERT INTO t VALUES (1)');
  await lost.point();
  await lost.keepKey();
  restored = join(lost.root, 'restored');
  const { code, stderr } = await lost.restore(restored);
  assert.equal(code, 0, stderr);
});
after(() => lost.end());

function compare(to: string, ...more: readonly string[]) {
  const args = ['recovery', 'compare', '--from', lost.target, '--to', to, '--key-file', lost.keyFile];
  return runCloudlet([...args, ...more], { env: {}, timeoutMs: 100_000 });
}

/** A damaged copy of the restored directory. */
async function hurt(how: (directory: string) => void) {
  const copy = join(lost.root, `copy-${++copies}`);
  cpSync(restored, copy, { recursive: true });
  how(copy);
  return compare(copy);
}

function inMetadata(sql: string) {
  return (directory: string) => {
    const database = new DatabaseSync(join(directory, 'metadata.db'));
    // Triggers of the ledger forbid changes.
    const triggers = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'trigger'").all();
    for (const { name } of triggers) database.exec(`DROP TRIGGER "${name}"`);
    database.exec(`PRAGMA foreign_keys = OFF; ${sql}`);
    database.close();
  };
}

test('a restored directory is the same as its point', async () => {
  for (const more of [[], ['--sample'], ['latest']]) {
    const { code, stdout, stderr } = await compare(restored, ...more);
    assert.equal(code, 0, `${stdout}${stderr}`);
    assert.match(stdout, /same +buckets +all 1 are the same/);
    assert.match(stdout, /same +ledger +\d+ transfers?, the last one [0-9a-f]{12}/);
    assert.match(stdout, /same +files: objects +all 2 files: equal bytes \(2\.9 MiB\)/);
    assert.match(stdout, /same +files: databases +all 1 file/);
    assert.match(stdout, /are the same\n$/);
  }
});

test('bytes that were changed, cut or removed are named by their object', async () => {
  const changed = await hurt((directory) => {
    const [path = ''] = blobFiles(directory);
    const bytes = readFileSync(path);
    bytes.writeUInt8(bytes.readUInt8(1_200_000) ^ 1, 1_200_000);
    writeFileSync(path, bytes);
  });
  assert.equal(changed.code, 1);
  assert.match(
    changed.stdout,
    /DIFFERS +files: objects .*\(files\/(one|two) of .*\) differs from byte 1200000 on/,
  );
  assert.match(changed.stdout, /same +tables/);
  const cut = await hurt((directory) => writeFileSync(blobFiles(directory)[1] ?? '', 'x'));
  assert.match(cut.stdout, /\(files\/(one|two) of .*\) has 1 bytes, but \d+ in the point/);
  const gone = await hurt((directory) => rmSync(join(directory, 'databases', 'kept'), { recursive: true }));
  assert.equal(gone.code, 1);
  assert.match(gone.stdout, /DIFFERS +files: databases +databases\/kept\/db-\w+ is missing/);
});

test('rows that differ are named: accounts, buckets, databases, the ledger', async () => {
  const hurts: readonly (readonly [string, RegExp])[] = [
    [
      "UPDATE accounts SET credits_micro = credits_micro + 1000000 WHERE username <> 'admin'",
      /accounts .*\(\d+\): 10\.0 credits.* in the point, 11\.0 credits.* restored/,
    ],
    [
      'DELETE FROM versions WHERE id = (SELECT max(id) FROM versions)',
      /buckets +files of .*: 2 objects, 2 versions.* in the point, 2 objects, 1 versions/,
    ],
    [
      "UPDATE databases SET name = 'other'",
      /databases +d1 of .* is missing\n +other of .* is not in the point/,
    ],
    [
      "UPDATE ledger_transfers SET hash = 'x' WHERE seq = (SELECT max(seq) FROM ledger_transfers)",
      /DIFFERS +ledger/,
    ],
    ['DELETE FROM billing_accounts', /tables +billing_accounts: \d+ rows in the point, 0 rows restored/],
  ];
  for (const [sql, named] of hurts) {
    const { code, stdout, stderr } = await hurt(inMetadata(sql));
    assert.equal(code, 1, `${sql}\n${stdout}${stderr}`);
    assert.match(stdout, named);
    assert.match(stdout, / differ\n$/);
  }
});

test('what cannot be compared gives 2, and says why', async () => {
  const nowhere = await compare(join(lost.root, 'nowhere'));
  assert.equal(nowhere.code, 2);
  assert.match(nowhere.stderr, /Could not compare: /);
  assert.equal((await compare(restored, 'drp-none')).code, 2);
  assert.equal((await runCloudlet(['recovery', 'compare', '--to', restored], { env: {} })).code, 2);
  const started = join(lost.root, 'started');
  cpSync(restored, started, { recursive: true });
  await (await CloudProcess.start({ dataDir: started })).end();
  const { code, stderr } = await compare(started);
  assert.equal(code, 2);
  assert.match(stderr, /was started 1 time after.*drill the recovery point/);
});
