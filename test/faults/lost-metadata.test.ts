/**
 * A database that is lost, emptied, outdated or another cloud's: nothing starts, and nothing is swept away.
 */
import assert from 'node:assert/strict';
import {
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import Database from 'better-sqlite3';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { blobFiles, eventually } from '../harness/waiting.ts';
import { contentOf } from './oracle.ts';

const SIZE = 20_000;
/** The sweepers run every few seconds. */
const env = { CLOUDLET_SWEEP_GRACE_SECONDS: '1' };
const FILES = ['metadata.db', 'metadata.db-wal', 'metadata.db-shm'];

let saved = '';
let dataDir = '';
let objectId = '';
let client: Client;

/** Every file below, except those written by each start. */
function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter((name) => !/^(metadata\.db.*|lock|reserve|control\..*)$/.test(name))
    .sort();
}

function move(from: string, to: string): void {
  for (const name of FILES) {
    if (readdirSync(from).includes(name)) renameSync(join(from, name), join(to, name));
  }
}

/** The last line of the start. */
async function refusalOf(directory: string): Promise<string> {
  const had = filesIn(directory);
  const error = await CloudProcess.start({ dataDir: directory, env }).then(
    async (cloud) => {
      await cloud.end();
      return assert.fail('it started');
    },
    (reason: Error) => reason,
  );
  assert.deepEqual(filesIn(directory), had, 'nothing was removed');
  const [line, ...rest] = error.message.split('\n').filter((text) => text.startsWith('cloudlet: '));
  assert.equal(rest.length, 0, 'one line');
  return line ?? assert.fail(error.message);
}

before(async () => {
  saved = mkdtempSync(join(tmpdir(), 'cloudlet-lost-'));
  const cloud = await CloudProcess.start({ dataDir: join(saved, 'cloud'), env });
  client = await new Client(cloud.api).newUser();
  await client.call('/api/buckets', { json: { name: 'kept' } });
  const { body } = await client.upload('kept', 'a', contentOf(1, SIZE));
  objectId = body.object_id;
  const made = await client.call('/api/databases', { json: { name: 'app', engine: 'sqlite' } });
  assert.equal(made.status, 201);
  assert.equal(await cloud.end(), 0);
});
after(() => rmSync(saved, { recursive: true, force: true }));

beforeEach(() => {
  dataDir = join(saved, 'tried');
  rmSync(dataDir, { recursive: true, force: true });
  cpSync(join(saved, 'cloud'), dataDir, { recursive: true, preserveTimestamps: true });
});

async function assertWhole(): Promise<void> {
  const cloud = await CloudProcess.start({ dataDir, env });
  const answer = await fetch(`${cloud.api}/api/storage/${objectId}/download`, {
    headers: { 'x-api-key': client.key ?? '' },
  });
  assert.deepEqual(Buffer.from(await answer.arrayBuffer()), contentOf(1, SIZE));
  await cloud.end();
}

test('a lost database ends the start; put back, everything is there', async () => {
  const aside = mkdtempSync(join(saved, 'aside-'));
  move(dataDir, aside);
  assert.match(await refusalOf(dataDir), /metadata\.db is missing, but the directory has master\.key, blobs/);
  assert.match(await refusalOf(dataDir), /recovery restore/, 'and no other one was made');
  move(aside, dataDir);
  await assertWhole();
});

test('an emptied database ends the start, whether its file or its tables are empty', async () => {
  truncateSync(join(dataDir, 'metadata.db'), 0);
  assert.match(await refusalOf(dataDir), /metadata\.db is empty, but the directory has/);
  cpSync(join(saved, 'cloud', 'metadata.db'), join(dataDir, 'metadata.db'));
  new Database(join(dataDir, 'metadata.db')).exec('DELETE FROM identity; DELETE FROM secrets').close();
  assert.match(await refusalOf(dataDir), /metadata\.db is empty, but the directory has/);
});

test('a damaged database ends the start with a line that names it', async () => {
  const path = join(dataDir, 'metadata.db');
  const bytes = readFileSync(path);
  writeFileSync(path, Buffer.concat([bytes.subarray(0, 4096), Buffer.alloc(bytes.length - 4096, 7)]));
  assert.match(await refusalOf(dataDir), /metadata\.db cannot be read \(.*malformed\): .* recovery point/);
  writeFileSync(path, Buffer.alloc(bytes.length, 7));
  assert.match(await refusalOf(dataDir), /metadata\.db cannot be read \(.*not a database\)/);
});

test('the scrub tells of a row that its index does not know any more', async () => {
  const path = join(dataDir, 'metadata.db');
  const name = 'a-name-that-flips';
  const flipped = new Database(path);
  flipped.exec(`CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('${name}'); CREATE INDEX t_a ON t (a)`);
  flipped.pragma('wal_checkpoint(TRUNCATE)');
  flipped.close();
  const written = readFileSync(path);
  const at = written.indexOf(name);
  written[at] = (written[at] ?? 0) ^ 0x10;
  writeFileSync(path, written);
  const cloud = await CloudProcess.start({ dataDir, env });
  try {
    const admin = new Client(cloud.api, ADMIN_KEY);
    await admin.call('/api/admin/scrub', { method: 'POST' });
    await eventually('the alarm is raised', async () => {
      const { components } = (await admin.call('/api/system/status')).body;
      return /damaged: .*t_a/.test(components.metadata.problem ?? '');
    });
  } finally {
    await cloud.end();
  }
});

test('a copy of the database from an earlier start is told from the last one', async () => {
  const earlier = join(saved, 'cloud', 'metadata.db');
  await assertWhole();
  cpSync(earlier, join(dataDir, 'metadata.db'));
  const line = await refusalOf(dataDir);
  assert.match(line, /metadata\.db is older than the files beside it/);
  const [, mark = '', path = ''] = /run: echo '(.*)' > (\S+)$/.exec(line) ?? [];
  writeFileSync(path, mark);
  await assertWhole();
});

test("another cloud's database, folder or key is refused", async () => {
  const other = join(saved, 'other');
  const cloud = await CloudProcess.start({ dataDir: other, env });
  await cloud.end();
  for (const name of ['metadata.db', 'blobs', 'databases', 'master.key']) {
    const aside = mkdtempSync(join(saved, 'aside-'));
    renameSync(join(dataDir, name), join(aside, name));
    cpSync(join(other, name), join(dataDir, name), { recursive: true });
    assert.match(await refusalOf(dataDir), /another cloud \(cld-\w+\) than/, name);
    rmSync(join(dataDir, name), { recursive: true });
    renameSync(join(aside, name), join(dataDir, name));
  }
  await assertWhole();
});

test('a folder of data that is not there is asked for, not made anew', async () => {
  renameSync(join(dataDir, 'blobs'), join(saved, 'elsewhere'));
  const line = await refusalOf(dataDir);
  assert.match(line, /blobs is missing: mount its disk, or put it back/);
  renameSync(join(saved, 'elsewhere'), join(dataDir, 'blobs'));
  rmSync(join(dataDir, 'databases', 'sqlite', '.cloud'));
  assert.match(await refusalOf(dataDir), /databases\/sqlite does not belong to this cloud/);
});

test('the mark that sweeps of an earlier version took is put back', async () => {
  const mark = join(dataDir, 'databases', 'kept', '.cloud');
  const had = readFileSync(mark, 'utf8');
  rmSync(mark);
  await assertWhole();
  assert.deepEqual(JSON.parse(readFileSync(mark, 'utf8')).cloud_id, JSON.parse(had).cloud_id);
  rmSync(join(dataDir, 'databases', 'kept'), { recursive: true });
  assert.match(await refusalOf(dataDir), /databases\/kept is missing/);
});

test('a directory of other files is not taken for a data directory', async () => {
  const home = mkdtempSync(join(saved, 'home-'));
  writeFileSync(join(home, 'thesis.txt'), 'mine');
  assert.match(await refusalOf(home), /contains files \(thesis\.txt\), but no cloud/);
});

describe('when far too much is named by no row', () => {
  const MANY = 120;

  test('it stays, and an alarm says so', async () => {
    const cloud = await CloudProcess.start({ dataDir, env });
    const writer = await new Client(cloud.api).newUser();
    await writer.call('/api/buckets', { json: { name: 'many' } });
    for (let i = 0; i < MANY; i++) await writer.upload('many', `o-${i}`, contentOf(i, SIZE));
    await cloud.end();
    const metadata = new Database(join(dataDir, 'metadata.db'));
    metadata.pragma('foreign_keys = OFF');
    metadata.exec('DELETE FROM versions; DELETE FROM objects; DELETE FROM blobs; DELETE FROM blob_garbage');
    metadata.close();
    const files = blobFiles(dataDir);
    assert.equal(files.length, MANY + 1);
    await cloud.start();
    const { alarms } = await eventually('the sweep that is stopped', async () => {
      const { body } = await new Client(cloud.api, ADMIN_KEY).call('/api/system/status');
      return JSON.stringify(body).includes('sweep_stopped_blobs') && body;
    });
    const alarm = alarms.find(({ code }: { code: string }) => code === 'sweep_stopped_blobs');
    assert.match(alarm.detail, /121 of 121 object files have no row/);
    await cloud.end();
    assert.deepEqual(blobFiles(dataDir), files);
  });
});
