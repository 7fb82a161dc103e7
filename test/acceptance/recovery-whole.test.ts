/**
 * A cloud with some of every resource, in use, is lost and restored from a point created meanwhile.
 * `RECOVERY_OBJECTS=10000` makes it full size: 1 GiB.
 */
import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { runCloudlet } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { DATABASES, DELETE, POST, rowsOf, run } from './databases-kit.ts';
import { LosableCloud } from './recovery-kit.ts';
import { cannotRunGuests, newVm, removeAll, sshBanner } from './vms-kit.ts';

const OBJECTS = Number(process.env.RECOVERY_OBJECTS ?? 300);
const AT_ONCE = 16;
const noGuests = cannotRunGuests() || notInstalled('ssh');
const execute = promisify(execFile);
let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start({ CLOUDLET_RATE_REQUESTS: '1000000' });
});
after(async () => {
  await removeAll(lost.user);
  await lost.end();
});

/** Runs `work` for each, several at a time. */
async function each<T>(items: readonly T[], work: (item: T, at: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    for (let at = next++; at < items.length; at = next++) await work(items[at] as T, at);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

const sumOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');
/** One in ten is 1 MiB, the others are small. */
const bytesOf = (at: number) => randomBytes(at % 10 === 0 ? 2 ** 20 : 100 + (at % 9) * 1000);

/**
 * Objects in a plain and a sealed bucket, some with two versions, some deleted: checksums of all versions.
 */
async function fillBuckets(): Promise<Map<string, string>> {
  const { user } = lost;
  const sums = new Map<string, string>();
  await user.expect(201, '/api/buckets', { json: { name: 'plain', versioning: true } });
  await user.expect(201, '/api/buckets', { json: { name: 'sealed', versioning: true, encryption: true } });
  await each(
    Array.from({ length: OBJECTS }, (_, at) => at),
    async (at) => {
      const bucket = at % 2 === 0 ? 'plain' : 'sealed';
      for (let version = 0; version <= Number(at % 7 === 0); version++) {
        const bytes = bytesOf(at);
        const { body } = await user.upload(bucket, `folder-${at % 13}/file ${at}`, bytes);
        sums.set(`${body.object_id}?version_id=${body.version_id}`, sumOf(bytes));
        if (at % 11 === 0) await user.expect(200, `/api/storage/${body.object_id}`, DELETE);
      }
    },
  );
  return sums;
}

/** All members of all versions, except the time of the last read. */
async function listing(): Promise<unknown[]> {
  const all: unknown[] = [];
  for (const bucket of ['plain', 'sealed']) {
    const listed = await lost.user.expect(200, `/api/buckets/${bucket}/files?include_versions=true`);
    all.push(...listed.map((entry: object) => ({ ...entry, last_accessed: null })));
  }
  return all;
}

/** A database of each available engine, to which pairs of rows are written one by one until `stop`. */
async function writtenDatabases() {
  const { components } = await lost.admin.expect(200, '/api/system/status');
  const engines: string[] = components.databases.engines
    .filter(({ available }: { available: boolean }) => available)
    .map(({ engine }: { engine: string }) => engine);
  const paths = new Map<string, string>();
  let isOver = false;
  const writers: Promise<void>[] = [];
  for (const engine of engines) {
    const { database_id: id } = await lost.user.expect(201, DATABASES, {
      json: { name: `w-${engine}`, engine },
    });
    const path = `${DATABASES}/${id}`;
    paths.set(engine, path);
    await writePair(engine, path, 1);
    const write = async () => {
      for (let n = 2; !isOver; n++) await writePair(engine, path, n);
    };
    writers.push(write());
  }
  const stop = async () => {
    isOver = true;
    await Promise.all(writers);
  };
  return { paths, stop };
}

/** Two rows that add up to 0, in one step. The first creates the table. */
async function writePair(engine: string, path: string, n: number): Promise<void> {
  if (engine !== 'mongodb') {
    if (n === 1) await run(lost.user, path, 'CREATE TABLE pairs (n integer, v integer)');
    await run(lost.user, path, `INSERT INTO pairs VALUES (${n}, 1), (${n}, -1)`);
    return;
  }
  const documents = [1, -1].map((v) => ({ n, v }));
  const json = { command: { insert: 'pairs', documents }, read_only: false };
  await lost.user.expect(200, `${path}/query`, { json });
}

/** Figures of all pairs: rows, pairs, the last and the first number, and the sum. */
async function countPairs(engine: string, path: string): Promise<number[]> {
  const sql = 'SELECT count(*), count(DISTINCT n), max(n), min(n), sum(v) FROM pairs';
  if (engine !== 'mongodb') return (await rowsOf(lost.user, path, sql))[0]?.map(Number) ?? [];
  const each = { _id: '$n', rows: { $sum: 1 }, sum: { $sum: '$v' } };
  const all = {
    _id: null,
    rows: { $sum: '$rows' },
    pairs: { $sum: 1 },
    last: { $max: '$_id' },
    first: { $min: '$_id' },
    sum: { $sum: '$sum' },
  };
  const command = { aggregate: 'pairs', pipeline: [{ $group: each }, { $group: all }], cursor: {} };
  const { rows } = await lost.user.expect(200, `${path}/query`, { json: { command } });
  return rows[0].slice(1).map(Number);
}

/** A machine that runs and appends numbered lines to a file until it is lost. */
async function writingMachine() {
  const key = join(lost.root, 'ssh-key');
  spawnSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
  const keys = [readFileSync(`${key}.pub`, 'utf8').trim()];
  const vm = await newVm(lost.user, { name: 'writes', ssh_keys: keys });
  const { ip_address: address } = await lost.user.expect(200, `${vm}/start`, POST);
  const ssh = async (command: string) => {
    await sshBanner(address);
    const options = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'LogLevel=ERROR'];
    const words = [...options, 'ConnectTimeout=100'].flatMap((option) => ['-o', option]);
    const args = [...words, '-i', key, '-p', '2222', `root@${address}`, command];
    return (await execute('ssh', args, { timeout: 110_000 })).stdout;
  };
  const loop = 'n=0; while :; do n=$((n+1)); echo $n >>~/log; sync; sleep 0.1; done';
  await ssh(`echo kept >~/file; sync; (${loop}) >/dev/null 2>&1 </dev/null & sleep 1`);
  return { vm, ssh };
}

/** As of one moment: complete pairs, all from the first to some last one. */
async function assertPrefix([engine, path]: [string, string], least: number): Promise<void> {
  await eventually('it is loaded', async () => (await lost.user.expect(200, path)).state === 'ready');
  const [rows, pairs = 0, last, first, sum] = await countPairs(engine, path);
  assert.deepEqual([rows, last, first, sum], [pairs * 2, pairs, 1, 0], engine);
  assert.ok(pairs >= least, `${engine}: ${pairs} pairs of ${least}`);
}

test('every byte, version, id, key, balance, row and disk of one moment per component comes back', async () => {
  const { user } = lost;
  const idle = lost.admin.as((await lost.admin.register()).api_key);
  const { credits } = await idle.expect(200, '/api/account');
  const sums = await fillBuckets();
  const before = await listing();
  const { paths, stop } = await writtenDatabases();
  const machine = noGuests ? undefined : await writingMachine();
  if (machine) await newVm(user, { name: 'idle' });
  const counts = new Map<string, number>();
  for (const [engine, path] of paths) {
    const [, pairs = 0] = await countPairs(engine, path);
    counts.set(engine, pairs);
  }
  const point = await lost.point();
  await stop();
  assert.deepEqual([point.state, point.gaps], ['complete', []]);
  assert.equal(point.contents.versions, before.length);
  assert.equal(point.contents.databases, paths.size);
  await lost.keepKey();
  if (machine) await user.expect(200, `${machine.vm}/stop?force=true`, POST);
  await lost.lose();
  await each([...sums], async ([id, sum]) => {
    const [object = '', query] = id.split('?');
    assert.equal(sumOf(await lost.user.download(object, `?${query}`)), sum, id);
  });
  assert.deepEqual(await listing(), before);
  const other = await (await CheckedClient.open(lost.cloud.api, idle.key)).expect(200, '/api/account');
  assert.equal(other.credits, credits);
  const ledger = await runCloudlet(['ledger', 'verify', '--data-dir', lost.dataDir], { env: {} });
  assert.equal(ledger.code, 0, ledger.stdout + ledger.stderr);
  for (const database of paths) await assertPrefix(database, counts.get(database[0]) ?? 0);
  if (machine === undefined) return;
  await eventually(
    'it is stopped',
    async () => (await lost.user.expect(200, machine.vm)).state === 'stopped',
  );
  await lost.user.expect(200, `${machine.vm}/start`, POST);
  assert.equal(await machine.ssh('cat ~/file'), 'kept\n');
  const lines = (await machine.ssh('cat ~/log')).trim().split('\n').map(Number);
  assert.deepEqual(
    lines.slice(0, -1),
    lines.slice(0, -1).map((_, at) => at + 1),
  );
});
