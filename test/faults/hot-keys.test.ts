/** Many clients on few names: each acknowledged version once, in order; each read returns a sent value. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { Checker } from './check.ts';
import { amount, chooseSeed, Load, makeBuckets, randomFrom, rounds, type TestBucket } from './load.ts';
import { md5Of, Oracle } from './oracle.ts';

const CLIENTS = 32;
const NAMES = 5;
const WRITES = amount(400, 20_000);
const KILLS = rounds(3, 50);
const env = { CLOUDLET_RATE_REQUESTS: '1000000' };
const versioned: readonly TestBucket[] = [{ name: 'history', versioning: true, encryption: false }];
const unversioned: readonly TestBucket[] = [{ name: 'plain', versioning: false, encryption: false }];

/** Mostly inline, because those have the tightest races; some with a file. */
function sizeFrom(random: () => number): number {
  return random() < 0.8 ? 1 + Math.floor(random() * 2000) : 20_000 + Math.floor(random() * 100_000);
}

interface Overwriting {
  readonly bucket: string;
  readonly random: () => number;
  readonly done: () => boolean;
}

/** Overwrites the hot names until `done`. */
async function overwrite(load: Load, { bucket, random, done }: Overwriting): Promise<void> {
  const lane = async () => {
    while (!done()) await load.put(bucket, `name/${Math.floor(random() * NAMES)}`, sizeFrom(random));
  };
  const lanes = await Promise.allSettled(Array.from({ length: CLIENTS }, lane));
  for (const result of lanes) {
    if (result.status === 'rejected' && !(result.reason instanceof TypeError)) throw result.reason;
  }
}

test('every acknowledged version of 32 clients on 5 names is there once, in an order they saw', async (t) => {
  const cloud = await CloudProcess.start({ env });
  t.after(() => cloud.stop());
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const client = await new Client(cloud.api).newUser();
  await makeBuckets(client, versioned);
  const oracle = new Oracle();
  const load = new Load({ client, oracle, random });
  await overwrite(load, { bucket: 'history', random, done: () => oracle.writes.length >= WRITES });
  assert.deepEqual(
    [...load.answers.keys()],
    [200],
    'a conflict between writers is not the business of clients',
  );
  await new Checker(oracle).check(client, { buckets: versioned });
  oracle.close();
});

test('the same with kill -9 in the middle', async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-hot-'));
  const cloud = await CloudProcess.start({ dataDir, env });
  t.after(() => cloud.crash());
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const { key } = await new Client(cloud.api).newUser();
  await makeBuckets(new Client(cloud.api, key), versioned);
  const oracle = new Oracle();
  const checker = new Checker(oracle);
  for (let round = 0; round < KILLS; round++) {
    const load = new Load({ client: new Client(cloud.api, key), oracle, random });
    const enough = oracle.count('acked') + 40 + Math.floor(random() * 60);
    const work = overwrite(load, { bucket: 'history', random, done: () => false });
    await eventually('some writes are acknowledged', () => oracle.count('acked') >= enough);
    await cloud.crash();
    await work;
    await cloud.start();
    await checker.check(new Client(cloud.api, key), { buckets: versioned });
  }
  oracle.close();
  await cloud.crash();
  rmSync(dataDir, { recursive: true });
});

test('readers during overwrites see whole values that were sent, and then the last', async (t) => {
  const cloud = await CloudProcess.start({ env });
  t.after(() => cloud.stop());
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const client = await new Client(cloud.api).newUser();
  await makeBuckets(client, unversioned);
  const oracle = new Oracle();
  const load = new Load({ client, oracle, random });
  const objectIds: string[] = [];
  for (let i = 0; i < NAMES; i++) await load.put('plain', `name/${i}`, 100);
  for (const { id } of (await client.call('/api/buckets/plain/files')).body) objectIds.push(id);
  let writing = true;
  const reads = new Map<string, number>();
  const reader = async (turn: number) => {
    for (let i = turn; writing; i++) {
      const index = i % NAMES;
      const md5 = md5Of(await client.download(objectIds[index] ?? ''));
      reads.set(`name/${index} ${md5}`, (reads.get(`name/${index} ${md5}`) ?? 0) + 1);
    }
  };
  const readers = Promise.all([reader(0), reader(1), reader(2), reader(3)]);
  try {
    await overwrite(load, { bucket: 'plain', random, done: () => oracle.writes.length >= WRITES });
  } finally {
    writing = false;
  }
  await readers;
  assert.deepEqual([...load.answers.keys()], [200]);
  const sent = new Set(oracle.writes.map(({ name, md5 }) => `${name} ${md5}`));
  assert.deepEqual(
    [...reads.keys()].filter((read) => !sent.has(read)),
    [],
    'values that nobody sent',
  );
  assert.ok(reads.size > NAMES, `only ${reads.size} different values were read`);
  await new Checker(oracle).check(client, { buckets: unversioned, allBytes: true });
  oracle.close();
});
