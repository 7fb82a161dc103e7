/** A restore drill killed while it replays a log or boots a machine also leaves nothing behind. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { NO_POSTGRESQL } from '../../scripts/installed.ts';
import { DATABASES, run } from '../acceptance/databases-kit.ts';
import { LosableCloud, POINTS, POST } from '../acceptance/recovery-kit.ts';
import { cannotRunGuests, newVm, removeAll } from '../acceptance/vms-kit.ts';
import { eventually } from '../harness/waiting.ts';
import { testKillsAt } from './drill-kills.ts';

const env = { CLOUDLET_CONTINUOUS_SECONDS: '1' };
const noGuests = cannotRunGuests();
let lost: LosableCloud;
let pointId: string;
let hasServer = false;
before(async () => {
  lost = await LosableCloud.start(env);
  await lost.point();
  const json = { name: 'shop', engine: 'postgresql' };
  const { status, body } = await lost.user.call(DATABASES, { json });
  hasServer = status === 201;
  if (hasServer) {
    const path = `${DATABASES}/${body.database_id}`;
    await run(lost.user, path, 'CREATE TABLE notes AS SELECT generate_series(1, 100000) AS i');
    const windows = async () => (await lost.user.expect(200, `${path}/moments`)).windows.length;
    await eventually('the log is archived', async () => (await windows()) > 0);
  }
  if (!noGuests) {
    const vm = await newVm(lost.user);
    await lost.user.expect(200, `${vm}/start`, POST);
    await eventually('it is ready', async () => (await lost.user.expect(200, vm)).ready_at);
  }
  pointId = (await lost.point()).point_id;
});
after(async () => {
  if (!noGuests) await removeAll(lost.user);
  await lost.end();
});

testKillsAt('replaying a log', () => (hasServer ? { lost, pointId, env } : NO_POSTGRESQL));
testKillsAt('booting a machine', () => noGuests || { lost, pointId, env });

test('the next drill passes', async () => {
  const { drill } = await lost.admin.expect(200, `${POINTS}/${pointId}/drill?wait=600`, POST);
  assert.equal(drill.reason, null, JSON.stringify(drill));
  const states = new Map(
    drill.checks.map(({ name, state }: { name: string; state: string }) => [name, state]),
  );
  if (hasServer) assert.equal(states.get('replayed log'), 'passed', JSON.stringify(drill));
  if (!noGuests) assert.equal(states.get('machine'), 'passed', JSON.stringify(drill));
});
