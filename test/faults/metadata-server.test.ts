/**
 * The metadata is in PostgreSQL: it and Cloudlet are killed at random moments, and nothing acknowledged is
 * lost.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { operatorPostgresql } from '../../server/testing/operator-postgresql.ts';
import type { OperatorServer } from '../../server/testing/operator-server.ts';
import { noPostgresql } from '../../server/testing/postgresql-fixture.ts';
import { TcpProxy } from '../../server/testing/tcp-proxy.ts';
import { Client } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { Checker } from './check.ts';
import { amount, chooseSeed, Load, makeBuckets, randomFrom, rounds } from './load.ts';
import { Oracle } from './oracle.ts';

const ROUNDS = rounds(6, 200);
const AWAY_MS = amount(4000, 60_000);
let server: OperatorServer;
const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-metadata-server-'));

before(async () => {
  if (noPostgresql !== false) return;
  server = await operatorPostgresql();
  await server.run('CREATE DATABASE cloudlet');
});
after(async () => {
  await server?.close();
  rmSync(dataDir, { recursive: true, force: true });
});

test('PostgreSQL goes away under load: errors are clear, it goes on by itself, and nothing is lost', {
  skip: noPostgresql,
}, async (t) => {
  await server.run('CREATE DATABASE away');
  const url = server.url('postgres', 'of-the-operator').replace(/postgres$/, 'away');
  const env = { CLOUDLET_METADATA_URL: url, CLOUDLET_RATE_REQUESTS: '1000000' };
  const cloud = await CloudProcess.start({ env });
  t.after(() => cloud.stop());
  const { key } = await new Client(cloud.api).newUser();
  const client = new Client(cloud.api, key);
  await makeBuckets(client);
  const oracle = new Oracle();
  const random = randomFrom(chooseSeed());
  // In addition to the oracle's knowledge.
  assert.equal((await client.call('/api/buckets', { json: { name: 'probes' } })).status, 201);
  const probe = (name: string) => client.upload('probes', name, Buffer.alloc(10));
  const load = new Load({ client, oracle, random, clients: 4 });
  load.start();
  await sleep(500);
  await server.stop();
  const seconds: number[] = [];
  const until = performance.now() + AWAY_MS;
  while (performance.now() < until) {
    const began = performance.now();
    const { status, body, headers } = await client.upload(
      'plain',
      `away-${seconds.length}`,
      Buffer.alloc(10),
    );
    if (status !== 200) {
      seconds.push((performance.now() - began) / 1000);
      assert.equal(status, 503, JSON.stringify(body));
      assert.ok(
        body.code === 'read_only' || /^\d+$/.test(headers.get('retry-after') ?? ''),
        JSON.stringify(body),
      );
      assert.match(body.detail, /nothing was stored|is unknown/);
    }
    await sleep(100);
  }
  assert.ok(seconds.length > 5, `${seconds.length} refusals`);
  seconds.sort((a, b) => a - b);
  const [median = 0, most = 0] = [seconds[Math.floor(seconds.length / 2)], seconds.at(-1)];
  t.diagnostic(
    `${seconds.length} refusals in ${AWAY_MS} ms; median ${median.toFixed(3)} s, longest ${most.toFixed(2)} s`,
  );
  await server.start();
  await eventually('it is back', async () => {
    return (await probe('back')).status === 200;
  });
  await load.stop();
  assert.ok(!load.answers.has(500), cloud.output.slice(-3000));
  await new Checker(oracle).check(client);
  t.diagnostic(`${oracle.count('acked')} writes acknowledged, none lost`);
  oracle.close();
});

const KINDS = ['Cloudlet', 'PostgreSQL', 'both', 'connections'] as const;

test('kills of Cloudlet, PostgreSQL, both and their connections lose nothing, and none is reported wrongly', {
  skip: noPostgresql,
}, async (t) => {
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const oracle = new Oracle();
  const checker = new Checker(oracle);
  const proxy = await TcpProxy.to(server.port);
  t.after(() => proxy.close());
  const url = server
    .url('postgres', 'of-the-operator')
    .replace(/postgres$/, 'cloudlet')
    .replace(`:${server.port}/`, `:${proxy.port}/`);
  const env = { CLOUDLET_METADATA_URL: url, CLOUDLET_RATE_REQUESTS: '1000000' };
  const cloud = await CloudProcess.start({ dataDir, env });
  t.after(() => cloud.crash());
  // Neither the cloud nor the server keeps this process alive.
  const alive = setInterval(() => {}, 1000);
  t.after(() => clearInterval(alive));
  await assert.rejects(CloudProcess.start({ env }), /in use by the Cloudlet on \S+, process \d+, since/);
  const { key } = await new Client(cloud.api).newUser();
  await makeBuckets(new Client(cloud.api, key));
  const kills = new Map<string, number>();
  for (let round = 0; round < ROUNDS; round++) {
    const load = new Load({ client: new Client(cloud.api, key), oracle, random });
    load.start();
    await sleep(random() * 800);
    const kind = KINDS[Math.floor(random() * KINDS.length)] as (typeof KINDS)[number];
    const isCloudKilled = kind === 'Cloudlet' || kind === 'both';
    kills.set(kind, (kills.get(kind) ?? 0) + 1);
    if (kind === 'connections') proxy.cut();
    await Promise.all([
      isCloudKilled ? cloud.crash() : undefined,
      kind === 'PostgreSQL' || kind === 'both' ? server.crash() : undefined,
    ]);
    await sleep(random() * 300);
    await load.stop();
    assert.ok(!load.answers.has(500), `an answer of 500: ${cloud.output.slice(-3000)}`);
    if (isCloudKilled) await cloud.start();
    const client = new Client(cloud.api, key);
    await eventually('it goes on by itself', async () => (await client.call('/api/buckets')).status === 200);
    await checker.check(client);
  }
  t.diagnostic(`${oracle.count('acked')} writes acknowledged, none lost in ${ROUNDS} kills`);
  t.diagnostic([...kills].map(([kind, count]) => `${kind}: ${count}`).join(', '));
  oracle.close();
  await assertAbsenceIsTold(cloud, new Client(cloud.api, key));
});

async function assertAbsenceIsTold(cloud: CloudProcess, client: Client): Promise<void> {
  const admin = new Client(cloud.api, ADMIN_KEY);
  await server.stop();
  await eventually('it is noticed', async () => {
    const { status, body } = await client.upload('plain', 'away', Buffer.alloc(10));
    // A commit sent before the loss of the connection was noticed: its outcome is unknown.
    if (status === 200 || /is unknown/.test(body.detail)) return false;
    assert.deepEqual([status, body.code], [503, 'overloaded'], JSON.stringify(body));
    assert.match(body.detail, /cannot be reached; nothing was stored/);
    return true;
  });
  await eventually('the status says so', async () => {
    const { metadata } = (await admin.call('/api/system/status')).body.components;
    assert.doesNotMatch(JSON.stringify(metadata), /of-the-operator/);
    // Requests on lost connections notice this before an attempt to connect does.
    return metadata.status === 'degraded' && typeof metadata.fix === 'string';
  });
  await server.start();
  await eventually('it is back', async () => {
    return (await client.upload('plain', 'back', Buffer.alloc(10))).status === 200;
  });
  await eventually('the alarm ends', async () => {
    const { body } = await admin.call('/api/system/status');
    return !JSON.stringify(body).includes('metadata_unreachable');
  });
  const metrics = await (await fetch(`${cloud.api}/metrics`)).text();
  for (const name of ['commits', 'batches', 'batch_seconds', 'lost_connections']) {
    // Since the cloud's last start, which may be less than a second of batches ago.
    assert.ok(
      Number(new RegExp(`^cloudlet_metadata_${name}_total (\\S+)$`, 'm').exec(metrics)?.[1]) > 0,
      name,
    );
  }
}
