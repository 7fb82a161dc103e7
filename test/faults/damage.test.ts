/**
 * Stored bytes that change by themselves: an error before the damaged chunk is sent; scrub names the object.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { blobFiles, eventually } from '../harness/waiting.ts';
import { contentOf } from './oracle.ts';

const LAUNCHER = fileURLToPath(new URL('../../bin/cloudlet', import.meta.url));
const CHUNK_BYTES = 65_536;
const SIZE = 5 * CHUNK_BYTES + 1000;

interface Stored {
  readonly name: string;
  readonly objectId: string;
  readonly path: string;
  readonly bytes: Buffer;
}

interface Received {
  readonly status: number;
  readonly bytes: Buffer;
  /** Whether all announced bytes arrived. */
  readonly whole: boolean;
}

let cloud: CloudProcess;
let client: Client;
let number = 0;

before(async () => {
  cloud = await CloudProcess.start();
  client = await new Client(cloud.api).newUser();
  for (const [name, encryption] of [
    ['plain', false],
    ['sealed', true],
  ] as const) {
    assert.equal((await client.call('/api/buckets', { json: { name, encryption } })).status, 201);
  }
});
after(() => cloud.stop());

async function store(bucket: string, size = SIZE): Promise<Stored> {
  const name = `object-${++number}`;
  const bytes = contentOf(number, size);
  const known = new Set(blobFiles(cloud.dataDir));
  const { status, body } = await client.upload(bucket, name, bytes);
  assert.equal(status, 200);
  const path = blobFiles(cloud.dataDir).find((candidate) => !known.has(candidate)) ?? '';
  return { name, objectId: body.object_id, path, bytes };
}

/** fetch hides the number of bytes before the connection was cut, so this uses node:http. */
function receive(objectId: string, range?: string): Promise<Received> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-api-key': client.key ?? '', ...(range === undefined ? {} : { range }) };
    const call = request(`${cloud.api}/api/storage/${objectId}/download`, { headers, agent: false });
    // A connection that is neither served nor cut must fail the test, not hang it.
    const stuck = setTimeout(() => call.destroy(new Error('neither served nor cut')), 20_000);
    call.on('error', reject);
    call.on('close', () => clearTimeout(stuck));
    call.on('response', (response) => {
      const parts: Buffer[] = [];
      const settle = () => {
        const bytes = Buffer.concat(parts);
        resolve({ status: response.statusCode ?? 0, bytes, whole: response.complete });
      };
      response.on('data', (part: Buffer) => parts.push(part));
      response.on('error', () => {});
      response.on('close', settle);
    });
    call.end();
  });
}

function flipBit(path: string, offset: number): void {
  const fd = openSync(path, 'r+');
  const byte = Buffer.alloc(1);
  readSync(fd, byte, 0, 1, offset);
  writeSync(fd, Buffer.from([(byte[0] ?? 0) ^ 0x10]), 0, 1, offset);
  closeSync(fd);
}

/** A problem when the damage is detected immediately; otherwise a cut connection after correct bytes only. */
async function assertRefused({ objectId, bytes }: Stored, { atOnce }: { atOnce: boolean }): Promise<void> {
  const { status, bytes: received, whole } = await receive(objectId);
  if (atOnce || status !== 200) {
    assert.equal(status, 500);
    assert.equal(JSON.parse(received.toString()).code, 'data_corrupted');
    return;
  }
  assert.equal(whole, false, 'the answer looked complete');
  assert.ok(received.length < bytes.length);
  assert.ok(received.equals(bytes.subarray(0, received.length)), 'altered bytes were sent');
}

async function assertSound({ objectId, bytes }: Stored): Promise<void> {
  const { status, bytes: received, whole } = await receive(objectId);
  assert.deepEqual([status, whole, received.equals(bytes)], [200, true, true]);
}

interface Damage {
  readonly name: string;
  readonly object_id: string;
}

/** With the API, which is fast. */
async function scrub(): Promise<Damage[]> {
  const admin = new Client(cloud.api, ADMIN_KEY);
  await admin.call('/api/admin/scrub', { method: 'POST' });
  let report = (await admin.call('/api/admin/scrub')).body;
  await eventually('the scrub has ended', async () => {
    report = (await admin.call('/api/admin/scrub')).body;
    return !report.running;
  });
  return report.damaged;
}

/** With the command, its exit code and output. */
function scrubByCommand(damaged: readonly Stored[]): void {
  const env = { PATH: process.env.PATH, CLOUDLET_DATA_DIR: cloud.dataDir };
  const { status, stdout } = spawnSync(LAUNCHER, ['scrub'], { env, encoding: 'utf8', timeout: 60_000 });
  assert.equal(status, damaged.length === 0 ? 0 : 1, stdout);
  const named = stdout.split('\n').filter((line) => line.startsWith('damaged:'));
  assert.equal(named.length, damaged.length, stdout);
  for (const { name, objectId } of damaged) {
    assert.ok(
      named.some((line) => line.includes(name) && line.includes(objectId)),
      `${name} is not named:\n${stdout}`,
    );
  }
}

async function assertScrubNames(damaged: readonly Stored[]): Promise<void> {
  const named = await scrub();
  assert.deepEqual(
    named.map(({ name, object_id }) => `${name} ${object_id}`).sort(),
    damaged.map(({ name, objectId }) => `${name} ${objectId}`).sort(),
  );
  const { body } = await new Client(cloud.api, ADMIN_KEY).call('/api/system/status');
  const alarms = body.alarms.map(({ code }: { code: string }) => code);
  assert.deepEqual(alarms, damaged.length === 0 ? [] : ['damaged_objects']);
  assert.equal(body.status, damaged.length === 0 ? 'ok' : 'degraded');
}

/** Without a scrub. */
async function assertReported({ objectId }: Stored): Promise<void> {
  const admin = new Client(cloud.api, ADMIN_KEY);
  await eventually('who looks after it is told', async () => {
    const { alarms } = (await admin.call('/api/system/status')).body;
    const { damaged } = (await admin.call('/api/admin/scrub')).body;
    return (
      alarms.some(({ code }: { code: string }) => code === 'damaged_objects') &&
      damaged.some(({ object_id }: Damage) => object_id === objectId)
    );
  });
}

/** Damages an object, checks that it is refused and named while another is served, and restores it. */
async function tryDamage(
  bucket: string,
  damage: (stored: Stored, other: Stored) => void,
  atOnce: boolean,
): Promise<void> {
  const stored = await store(bucket);
  const other = await store(bucket);
  const whole = readFileSync(stored.path);
  damage(stored, other);
  await assertRefused(stored, { atOnce });
  await assertSound(other);
  await assertReported(stored);
  await assertScrubNames([stored]);
  writeFileSync(stored.path, whole, { mode: 0o600 });
  await assertSound(stored);
}

for (const bucket of ['plain', 'sealed']) {
  const tail = bucket === 'plain' ? 4 : 16;
  const frame = CHUNK_BYTES + tail;
  describe(`in a ${bucket} bucket`, () => {
    for (const { what, offset, chunk } of [
      { what: 'the first byte', offset: 0, chunk: 0 },
      { what: 'the last byte of the first chunk', offset: CHUNK_BYTES - 1, chunk: 0 },
      { what: "the first chunk's checksum", offset: CHUNK_BYTES, chunk: 0 },
      { what: 'the fourth chunk', offset: 3 * frame + 77, chunk: 3 },
      { what: 'the last byte of the file', offset: SIZE + 6 * tail - 1, chunk: 5 },
    ]) {
      test(`a bit flipped in ${what} is never sent`, async () => {
        const flip = ({ path }: Stored) => flipBit(path, offset);
        await tryDamage(bucket, flip, chunk === 0);
      });

      test(`with a bit flipped in ${what}, ranges elsewhere are served`, async () => {
        const stored = await store(bucket);
        flipBit(stored.path, offset);
        for (let index = 0; index < 6; index++) {
          const start = index * CHUNK_BYTES + 10;
          const { status, bytes } = await receive(stored.objectId, `bytes=${start}-${start + 499}`);
          assert.equal(status, index === chunk ? 500 : 206, `chunk ${index}`);
          if (index !== chunk) assert.ok(bytes.equals(stored.bytes.subarray(start, start + 500)));
        }
        flipBit(stored.path, offset);
      });
    }

    for (const [what, damage] of [
      ['a file cut short by one byte', ({ path }) => truncateSync(path, SIZE + 6 * tail - 1)],
      ['a file cut at a chunk', ({ path }) => truncateSync(path, 2 * frame)],
      ['an empty file', ({ path }) => truncateSync(path, 0)],
      ['a file with bytes added', ({ path }) => writeFileSync(path, 'x', { flag: 'a' })],
      ["another object's file", ({ path }, other) => copyFileSync(other.path, path)],
      ['a missing file', ({ path }) => rmSync(path)],
    ] satisfies [string, (stored: Stored, other: Stored) => void][]) {
      test(`${what} is not served`, () => tryDamage(bucket, damage, true));
    }

    test('two files that were exchanged are both refused', async () => {
      const [one, two] = [await store(bucket), await store(bucket)];
      const exchange = () => {
        renameSync(one.path, `${one.path}.moved`);
        renameSync(two.path, one.path);
        renameSync(`${one.path}.moved`, two.path);
      };
      exchange();
      await assertRefused(one, { atOnce: true });
      await assertRefused(two, { atOnce: true });
      await assertScrubNames([one, two]);
      scrubByCommand([one, two]);
      exchange();
      await assertScrubNames([]);
    });

    test('a damaged inline row is refused and named', async () => {
      const stored = await store(bucket, 5000);
      const other = await store(bucket, 5000);
      await cloud.crash();
      const set = (change: (data: Buffer) => Buffer) => changeInline(stored.objectId, change);
      const whole = set((data) => Buffer.from(data.map((byte, i) => (i === 4321 ? byte ^ 1 : byte))));
      await cloud.start();
      client = new Client(cloud.api, client.key);
      await assertRefused(stored, { atOnce: true });
      await assertSound(other);
      await assertScrubNames([stored]);
      scrubByCommand([stored]);
      await cloud.crash();
      set(() => whole);
      await cloud.start();
      client = new Client(cloud.api, client.key);
      await assertScrubNames([]);
      scrubByCommand([]);
      await assertSound(stored);
    });
  });
}

/** While the process is stopped. Returns the previous bytes. */
function changeInline(objectId: string, change: (data: Buffer) => Buffer): Buffer {
  const database = new Database(join(cloud.dataDir, 'metadata.db'));
  try {
    const row = database
      .prepare(
        `SELECT b.id, b.data FROM objects o JOIN versions v ON v.id = o.current JOIN blobs b ON b.id = v.blob
         WHERE o.object_id = ?`,
      )
      .get(objectId) as { id: number; data: Buffer };
    database.prepare('UPDATE blobs SET data = ? WHERE id = ?').run(change(row.data), row.id);
    return row.data;
  } finally {
    database.close();
  }
}
