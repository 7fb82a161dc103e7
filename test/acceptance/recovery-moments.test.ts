/** A PostgreSQL database as of a moment, restored by its owner beside the live one. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '../harness/waiting.ts';
import { DATABASES, newDatabase, noServerOf, POST, rowsOf, run } from './databases-kit.ts';
import { LosableCloud } from './recovery-kit.ts';

const ENV = { CLOUDLET_CONTINUOUS_SECONDS: '1' };
let lost: LosableCloud;
let path: string;
const skip = noServerOf('postgresql');

before(async () => {
  lost = await LosableCloud.start(ENV);
  await lost.point();
  if (skip) return;
  const made = await lost.user.expect(201, DATABASES, { json: { name: 'shop', engine: 'postgresql' } });
  path = `${DATABASES}/${made.database_id}`;
});
after(() => lost.end());

const idOf = (of: string) => of.slice(DATABASES.length + 1);
const momentsOf = (of: string) => lost.user.expect(200, `${of}/moments`);
/** The time of the server, as RFC 3339. */
async function serverTime(): Promise<string> {
  const [[time] = []] = await rowsOf(lost.user, path, 'SELECT clock_timestamp()::text');
  return new Date(String(time)).toISOString();
}
/** Waits until that moment can be restored. */
async function untilArchived(time: string): Promise<void> {
  await eventually('the log is archived', async () => {
    const { windows } = await momentsOf(path);
    return windows.some(({ to }: { to: string }) => Date.parse(`${to}Z`) > Date.parse(time));
  });
}
async function restored(at: string, name: string): Promise<string> {
  const json = { name, from: { database_id: idOf(path), at } };
  const { database_id, state } = await lost.user.expect(201, DATABASES, { json });
  assert.equal(state, 'ready');
  return `${DATABASES}/${database_id}`;
}
const COUNT = 'SELECT count(*)::int, sum(i)::int FROM notes';

test('a database is had back as of any moment since its log is archived', { skip }, async () => {
  const { user } = lost;
  await run(user, path, 'CREATE TABLE notes (i INTEGER PRIMARY KEY, x TEXT)');
  await eventually('there is a base copy', async () => (await momentsOf(path)).windows.length > 0);
  await sleep(1000);
  const moments: string[] = [];
  for (let i = 1; i <= 3; i++) {
    await run(user, path, `INSERT INTO notes VALUES (${i}, repeat('x', 100))`);
    moments.push(await serverTime());
    await sleep(50);
  }
  const dropped = await run(user, path, 'DROP TABLE notes').then(serverTime);
  await untilArchived(dropped);
  // A sweep keeps pieces that only base copies use.
  await lost.admin.expect(200, '/api/disaster-recovery/check', POST);
  for (const [at, moment] of moments.entries()) {
    const back = await restored(moment, `back-${at}`);
    assert.deepEqual(await rowsOf(user, back, COUNT), [[at + 1, ((at + 1) * (at + 2)) / 2]]);
  }
  await user.expect(400, `${path}/query`, { json: { statement: COUNT } });
  const scratch = join(lost.dataDir, 'databases', 'postgresql', 'scratch');
  await eventually('copies are removed', () => readdirSync(scratch).length === 0);
});

test('moments before and after the log, and without one, are refused with the reason', { skip }, async () => {
  const { user, admin } = lost;
  const attempt = (at: string, more: object = {}) => ({
    json: { name: 'never', from: { database_id: idOf(path), at, ...more } },
  });
  await user.refused(404, 'point_not_found', [DATABASES, attempt('2020-01-01T00:00:00Z')]);
  await user.refused(404, 'point_not_found', [DATABASES, attempt('2120-01-01T00:00:00Z')]);
  await user.refused(400, 'invalid_request', [DATABASES, attempt('yesterday')]);
  await user.refused(400, 'invalid_request', [
    DATABASES,
    attempt('2026-01-01T00:00:00Z', { point_id: 'drp-x' }),
  ]);
  const stranger = user.as((await user.register()).api_key);
  const now = await serverTime();
  for (const other of [stranger, admin]) {
    await other.refused(404, 'database_not_found', [`${path}/moments`]);
    await other.refused(404, 'database_not_found', [DATABASES, attempt(now)]);
  }
  const sqlite = await newDatabase(user, 'CREATE TABLE t (x)');
  const { windows, reason } = await momentsOf(sqlite);
  assert.deepEqual(windows, []);
  assert.match(reason, /recovery points only/);
  const names = (await user.expect(200, DATABASES)).map(({ name }: { name: string }) => name);
  assert.ok(!names.includes('never'));
});

test('a restore that a kill cuts off leaves nothing, and works afterwards', { skip }, async () => {
  const moment = await serverTime();
  await untilArchived(moment);
  const scratch = join(lost.dataDir, 'databases', 'postgresql', 'scratch');
  const running = () => readdirSync(scratch).some((name) => existsSync(join(scratch, name, 'keeper', 'run')));
  const cut = restored(moment, 'cut-off').catch(() => 'cut off');
  await eventually('its server runs', running);
  await lost.cloud.crash();
  assert.equal(await cut, 'cut off');
  await lost.startAgain(ENV);
  await eventually('it is removed', () => readdirSync(scratch).length === 0);
  const names = (await lost.user.expect(200, DATABASES)).map(({ name }: { name: string }) => name);
  assert.ok(!names.includes('cut-off'));
  await restored(moment, 'cut-off');
});

test('what was committed a moment before the cloud was lost is there without it', { skip }, async () => {
  const { user } = lost;
  await run(user, path, 'CREATE TABLE late (i INTEGER)');
  await lost.point();
  await lost.keepKey();
  await run(user, path, 'INSERT INTO late VALUES (7)');
  const moment = await serverTime();
  await untilArchived(moment);
  await lost.lose('latest', ENV);
  await eventually('it is loaded', async () => (await lost.user.expect(200, path)).state === 'ready');
  assert.deepEqual(await rowsOf(lost.user, path, 'SELECT * FROM late'), []);
  const back = await restored(moment, 'of-the-lost');
  assert.deepEqual(await rowsOf(lost.user, back, 'SELECT * FROM late'), [[7]]);
});
