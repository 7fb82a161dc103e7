/**
 * A cloud with 100,000 objects and 10 GiB moves to PostgreSQL and S3 and back, and is killed on the way each
 * time. Each object is hashed at the end.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { operatorPostgresql } from '../../server/testing/operator-postgresql.ts';
import type { OperatorServer } from '../../server/testing/operator-server.ts';
import { noPostgresql } from '../../server/testing/postgresql-fixture.ts';
import { contentOf } from '../faults/oracle.ts';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { runCloudlet } from '../harness/command.ts';
import { S3Server } from '../harness/s3-server.ts';

/** 1: 100,000 objects and 10 GiB, which take one or two hours and 35 GB of disk. */
const SCALE = Number(process.env.MIGRATE_SCALE ?? 1);
const OBJECTS = Math.round(100_000 * SCALE);
const LEAST_BYTES = 10 * 2 ** 30 * SCALE;
const AT_ONCE = 8;
const COMMAND_MS = 7_200_000;
const LAUNCHER = join(import.meta.dirname, '../../bin/cloudlet');
/** Fraction of the bytes and objects; then the command is killed. */
const KILL_AT = /^[3-9]0 % /m;
const KIB = 1024;
const MIB = 2 ** 20;

/** Of each 1,000: 600 in rows, 391 of up to 120 KiB, 8 of up to 9 MiB, and one of up to 64 MiB. */
function sizeOf(number: number): number {
  const place = number % 1000;
  const step = Math.floor(number / 1000) % 10;
  if (place === 0) return 64 * MIB - step * 6 * MIB;
  if (place < 9) return place * MIB + step * 100_000;
  if (place < 400) return (16 * KIB + 1 + (((place * 7919 + step) % 391) / 391) * 104 * KIB) | 0;
  return (place * 27 + step) % (16 * KIB + 1);
}

const nameOf = (number: number) => `${number % 100}/${number}`;
const bucketOf = (number: number) => (number % 2 === 0 ? 'plain' : 'sealed');
const hashOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('base64');

type Env = Readonly<Record<string, string>>;

class Mover {
  readonly dataDir: string;
  readonly #ids: string[] = [];
  readonly #say: (text: string) => void;

  constructor(folder: string, say: (text: string) => void) {
    this.dataDir = join(folder, 'cloud');
    this.#say = say;
  }

  async timed<T>(what: string, work: () => Promise<T>): Promise<T> {
    const began = performance.now();
    const result = await work();
    this.#say(`${what}: ${((performance.now() - began) / 1000).toFixed(0)} s`);
    return result;
  }

  async withCloud(env: Env, work: (user: Client) => Promise<void>): Promise<void> {
    const raised = { CLOUDLET_RATE_REQUESTS: '1000000000', ...env };
    const cloud = await CloudProcess.start({ dataDir: this.dataDir, env: raised });
    try {
      await work(new Client(cloud.api, ADMIN_KEY));
    } finally {
      await cloud.end();
    }
  }

  async fill(user: Client): Promise<void> {
    for (const name of ['plain', 'sealed']) {
      const { status } = await user.call('/api/buckets', { json: { name, encryption: name === 'sealed' } });
      assert.equal(status, 201);
    }
    let bytes = 0;
    await each(OBJECTS, async (number) => {
      const content = contentOf(number, sizeOf(number));
      const { status, body } = await user.upload(bucketOf(number), nameOf(number), content);
      assert.equal(status, 200, JSON.stringify(body));
      this.#ids[number] = body.object_id;
      bytes += content.length;
    });
    assert.ok(bytes >= LEAST_BYTES, `${bytes} bytes`);
    this.#say(`${OBJECTS} objects, ${bytes} bytes`);
  }

  /** Every `step`th object has its stored content. */
  async assertEqual(user: Client, step: number): Promise<void> {
    await each(Math.floor(OBJECTS / step), async (index) => {
      const number = index * step;
      const bytes = await user.download(this.#ids[number] ?? '');
      assert.equal(hashOf(bytes), hashOf(contentOf(number, sizeOf(number))), `object ${number}`);
    });
    const { body } = await user.call('/api/buckets');
    const counted = (body as { object_count: number }[]).reduce((sum, one) => sum + one.object_count, 0);
    assert.equal(counted, OBJECTS);
  }

  /** Kills the command once it has moved a part, and runs it again to its end. */
  async move(env: Env, ...words: readonly string[]): Promise<void> {
    const args = ['migrate', ...words];
    const settings = { CLOUDLET_DATA_DIR: this.dataDir, ...env };
    const child = spawn(LAUNCHER, args, {
      env: { PATH: process.env.PATH, ...settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (KILL_AT.test(output)) child.kill('SIGKILL');
    });
    const [, signal] = await once(child, 'close');
    assert.equal(signal, 'SIGKILL', output);
    const { code, stdout, stderr } = await runCloudlet(args, { env: settings, timeoutMs: COMMAND_MS });
    assert.equal(code, 0, stdout + stderr);
    assert.match(stdout, /^100 % /m);
  }

  /** As in the output of the move. */
  removeFiles(): void {
    const folder = join(this.dataDir, 'blobs');
    const old = readdirSync(folder).filter((name) => /^[0-9a-z]{2}$/.test(name));
    for (const name of old) rmSync(join(folder, name), { recursive: true });
  }
}

async function each(count: number, work: (number: number) => Promise<void>): Promise<void> {
  let next = 0;
  const lane = async () => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

const folder = mkdtempSync(join(tmpdir(), 'cloudlet-many-'));
let server: OperatorServer;
let s3: S3Server;
before(async () => {
  if (noPostgresql !== false) return;
  server = await operatorPostgresql();
  s3 = await S3Server.start(join(folder, 's3'));
});
after(async () => {
  await s3?.kill();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('many objects go to PostgreSQL and S3 and come back as they were', {
  skip: noPostgresql,
}, async (t) => {
  const mover = new Mover(folder, (text) => t.diagnostic(text));
  const to = {
    CLOUDLET_METADATA_URL: server.url('postgres', 'of-the-operator'),
    CLOUDLET_BLOBS_URL: s3.url('many'),
  };
  await mover.withCloud({}, (user) => mover.timed('stored', () => mover.fill(user)));
  await mover.timed('there, killed once', () => mover.move(to, '--to', 'postgresql', '--blobs', 's3'));
  mover.removeFiles();
  await mover.withCloud(to, (user) => mover.timed('one of 20 read', () => mover.assertEqual(user, 20)));
  await mover.timed('back, killed once', () => mover.move(to, '--to', 'sqlite', '--blobs', 'files'));
  await s3.kill();
  await server.stop();
  await mover.withCloud({}, (user) => mover.timed('all read', () => mover.assertEqual(user, 1)));
  const env = { CLOUDLET_DATA_DIR: mover.dataDir };
  const { code, stdout } = await runCloudlet(['ledger', 'verify'], { env, timeoutMs: COMMAND_MS });
  assert.equal(code, 0, stdout);
});
