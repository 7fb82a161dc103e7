/** `cloudlet migrate` with the objects of a real cloud, killed while it runs. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client } from '../../test/harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../../test/harness/cloud-process.ts';
import { type Ended, runCloudlet } from '../../test/harness/command.ts';
import { operatorPostgresql } from '../testing/operator-postgresql.ts';
import type { OperatorServer } from '../testing/operator-server.ts';
import { noPostgresql } from '../testing/postgresql-fixture.ts';
import { S3Fixture } from '../testing/s3-fixture.ts';

const LAUNCHER = join(import.meta.dirname, '../../bin/cloudlet');
const SIZES = [100, 20_000, 70_000, 1_500_000];
const OBJECTS = 40;
/** Number of requests that store an object; then the command is killed. */
const KILL_AFTER = 8;

type Env = Readonly<Record<string, string>>;

let s3: S3Fixture;
before(async () => {
  s3 = await S3Fixture.start();
});
after(() => s3?.close());

class Moving {
  readonly dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  readonly #digests = new Map<string, string>();

  close(): void {
    rmSync(this.dataDir, { recursive: true });
  }

  run(env: Env, ...args: readonly string[]): Promise<Ended> {
    const settings = { CLOUDLET_DATA_DIR: this.dataDir, ...env };
    return runCloudlet(['migrate', ...args], { env: settings, timeoutMs: 120_000 });
  }

  /** Runs it until `isEnough` is true, and kills it. */
  async runKilled(env: Env, args: readonly string[], isEnough: () => boolean): Promise<void> {
    const settings = { PATH: process.env.PATH, CLOUDLET_DATA_DIR: this.dataDir, ...env };
    const child = spawn(LAUNCHER, ['migrate', ...args], { env: settings, stdio: 'ignore' });
    const timer = setInterval(() => {
      if (isEnough()) child.kill('SIGKILL');
    }, 1);
    const [, signal] = await once(child, 'exit');
    clearInterval(timer);
    assert.equal(signal, 'SIGKILL', 'it ended before it was killed');
  }

  async withCloud(env: Env, work: (user: Client) => Promise<void>): Promise<void> {
    const cloud = await CloudProcess.start({ dataDir: this.dataDir, env });
    try {
      await work(new Client(cloud.api, ADMIN_KEY));
    } finally {
      await cloud.end();
    }
  }

  async store(user: Client, generation: string): Promise<void> {
    for (const encryption of [false, true]) {
      const bucket = encryption ? 'sealed' : 'plain';
      await user.call('/api/buckets', { json: { name: bucket, encryption } });
      for (let i = 0; i < OBJECTS / 2; i++) {
        const content = randomBytes(SIZES[i % SIZES.length] ?? 0);
        const { status, body } = await user.upload(bucket, `${generation}-${i}`, content);
        assert.equal(status, 200, JSON.stringify(body));
        this.#digests.set(body.object_id, digestOf(content));
      }
    }
  }

  async assertAllThere(user: Client): Promise<void> {
    for (const [id, digest] of this.#digests) assert.equal(digestOf(await user.download(id)), digest);
  }
}

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

interface Round {
  readonly there: readonly string[];
  readonly back: readonly string[];
  /** The settings of the cloud if it is there. */
  readonly to: Env;
}

async function assertRound(moving: Moving, { there, back, to }: Round) {
  await moving.withCloud({}, async (user) => {
    await moving.store(user, 'first');
    const { code, stderr } = await moving.run(to, ...there);
    assert.deepEqual([code, /Another Cloudlet uses/.test(stderr)], [1, true], stderr);
  });
  s3.seen.length = 0;
  const puts = () => s3.count('PUT', '/blobs/');
  await moving.runKilled(to, there, () => puts() >= KILL_AFTER);
  const before = puts();
  const moved = await moving.run(to, ...there);
  assert.equal(moved.code, 0, moved.stderr);
  // Three of four sizes are not stored in rows.
  const named = (OBJECTS * 3) / 4;
  assert.match(moved.stdout, new RegExp(`^${named} objects moved, [1-9]\\d* read back and verified`, 'm'));
  assert.match(moved.stdout, new RegExp(`^100 % ${named} of ${named} objects, `, 'm'));
  // Requests in progress at the kill, and the probe, may be repeated once.
  assert.ok(puts() - before < named - KILL_AFTER / 2, `${puts()} and ${before}`);
  const again = await moving.run(to, ...there);
  assert.deepEqual(
    [again.code, /The objects are in \S+ already/.test(again.stdout)],
    [0, true],
    again.stdout,
  );
  const { [there.includes('--to') ? 'CLOUDLET_METADATA_URL' : 'CLOUDLET_BLOBS_URL']: _, ...lacking } = to;
  await assert.rejects(
    moving.withCloud(lacking, async () => {}),
    /The (objects of this cloud are|metadata of this cloud is) in \S+: set CLOUDLET_/,
  );
  await moving.withCloud(to, async (user) => {
    await moving.assertAllThere(user);
    await moving.store(user, 'second');
  });

  // As in the output.
  const folder = join(moving.dataDir, 'blobs');
  for (const name of readdirSync(folder)) {
    if (/^[0-9a-z]{2}$/.test(name)) rmSync(join(folder, name), { recursive: true });
  }
  const files = () =>
    readdirSync(folder, { recursive: true }).filter((name) => /blob-[0-9a-z]+$/.test(String(name))).length;
  await moving.runKilled(to, back, () => files() >= KILL_AFTER);
  assert.ok(files() < 2 * named);
  const returned = await moving.run(to, ...back);
  assert.equal(returned.code, 0, returned.stderr);
  assert.equal(files(), 2 * named);
  await assert.rejects(
    moving.withCloud(to, async () => {}),
    /are files of the data directory|was moved to/,
  );
  await moving.withCloud({}, async (user) => {
    await moving.assertAllThere(user);
  });
  const env = { CLOUDLET_DATA_DIR: moving.dataDir };
  const { code, stdout } = await runCloudlet(['ledger', 'verify'], { env });
  assert.equal(code, 0, stdout);
}

describe('migrate', () => {
  let moving: Moving;
  before(() => {
    moving = new Moving();
  });
  after(() => moving.close());

  test('objects go to S3 and back, killed on the way each time', async () => {
    const to = { CLOUDLET_BLOBS_URL: s3.url('alone') };
    await assertRound(moving, { there: ['--blobs', 's3'], back: ['--blobs', 'files'], to });
  });

  test('another cloud’s bucket is refused before anything is copied', async () => {
    const other = new Moving();
    try {
      await other.withCloud({}, (user) => other.store(user, 'first'));
      const before = s3.count('PUT', '/blobs/');
      const { code, stderr } = await other.run({ CLOUDLET_BLOBS_URL: s3.url('alone') }, '--blobs', 's3');
      assert.deepEqual([code, /the bucket belongs to the cloud cld-/.test(stderr)], [1, true], stderr);
      assert.equal(s3.count('PUT', '/blobs/'), before);
      await other.withCloud({}, (user) => other.assertAllThere(user));
    } finally {
      other.close();
    }
  });

  test('what it does not understand, or has no address for, is refused', async () => {
    for (const args of [[], ['now'], ['--to', 'mysql'], ['--blobs', 'tape'], ['--blobs', 's3']])
      assert.equal((await moving.run({}, ...args)).code, 2, args.join(' '));
  });
});

describe('migrate with PostgreSQL', { skip: noPostgresql }, () => {
  let server: OperatorServer;
  let moving: Moving;
  before(async () => {
    server = await operatorPostgresql();
    moving = new Moving();
  });
  after(async () => {
    moving?.close();
    await server?.close();
  });

  test('a start with an empty database says how to move, or which database is meant', async () => {
    const other = new Moving();
    const to = { CLOUDLET_METADATA_URL: server.url('postgres', 'of-the-operator') };
    const refused = (reason: RegExp) =>
      assert.rejects(
        other.withCloud(to, async () => {}),
        reason,
      );
    const empty = 'DROP SCHEMA public CASCADE; CREATE SCHEMA public';
    try {
      await other.withCloud({}, (user) => other.store(user, 'first'));
      await refused(/is empty, and \S+metadata\.db is still in use: move its rows with cloudlet migrate/);
      assert.equal((await other.run(to, '--to', 'postgresql')).code, 0);
      await server.run(empty);
      await refused(/is empty, but the directory has master\.key, blobs.*: name the database of this cloud/);
    } finally {
      other.close();
      await server.run(empty);
    }
  });

  test('metadata and objects go together, and come back', async () => {
    const to = {
      CLOUDLET_METADATA_URL: server.url('postgres', 'of-the-operator'),
      CLOUDLET_BLOBS_URL: s3.url('both'),
    };
    const there = ['--to', 'postgresql', '--blobs', 's3'];
    await assertRound(moving, { there, back: ['--to', 'sqlite', '--blobs', 'files'], to });
  });
});
