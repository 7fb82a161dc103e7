/** kill -9 between any two steps of audited calls: the effect and its entry both exist, or neither. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { operatorPostgresql } from '../../server/testing/operator-postgresql.ts';
import { noPostgresql } from '../../server/testing/postgresql-fixture.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { AuditedWork } from './audited-work.ts';
import { chooseSeed, randomFrom, rounds } from './load.ts';

const ROUNDS = rounds(4, 200);

async function killedAtRandom(t: TestContext, env: Readonly<Record<string, string>>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-audit-kill-'));
  const seed = chooseSeed();
  t.diagnostic(`FAULTS_SEED=${seed}`);
  const random = randomFrom(seed);
  const all = { CLOUDLET_RATE_REQUESTS: '1000000', CLOUDLET_SWEEP_GRACE_SECONDS: '1', ...env };
  const cloud = await CloudProcess.start({ dataDir, env: all });
  t.after(() => cloud.crash().then(() => rmSync(dataDir, { recursive: true })));
  const work = await AuditedWork.begin(cloud, random);
  let entries = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const enough = work.answered + 20 + Math.floor(random() * 60);
    const running = work.run();
    await eventually('some calls are answered', () => work.answered >= enough);
    await sleep(random() * 50);
    await cloud.crash();
    await running;
    await cloud.start();
    entries = await work.compare();
  }
  assert.deepEqual(work.faults, []);
  assert.ok(work.unanswered > ROUNDS, `only ${work.unanswered} calls were under way at a kill`);
  t.diagnostic(
    `${work.answered} calls answered, ${work.unanswered} cut by ${ROUNDS} kills, ${entries} entries`,
  );
}

test('with SQLite: each effect has its entry, and each entry its effect', (t) => killedAtRandom(t, {}));

test('with metadata in PostgreSQL: likewise', { skip: noPostgresql }, async (t) => {
  const server = await operatorPostgresql();
  t.after(() => server.close());
  // Neither the cloud nor the server keeps this process alive.
  const alive = setInterval(() => {}, 1000);
  t.after(() => clearInterval(alive));
  await server.run('CREATE DATABASE audited');
  const url = server.url('postgres', 'of-the-operator').replace(/postgres$/, 'audited');
  await killedAtRandom(t, { CLOUDLET_METADATA_URL: url });
});
