/** Long restores of objects: they block nobody, report their progress, and can be cancelled. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { CheckedClient } from '../harness/checked-client.ts';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud } from './recovery-kit.ts';

/**
 * So many that their restore takes longer than the portion after which others may go first, and so few that
 * their files are looked up in one step, after which others may go first, too.
 */
const MANY = 950;
const BYTES = 60_000;
const AT_ONCE = 50;

let lost: LosableCloud;
before(async () => {
  lost = await LosableCloud.start();
});
after(() => lost.end());

async function fill(user: CheckedClient, bucket: string, count: number): Promise<void> {
  await user.expect(201, '/api/buckets', { json: { name: bucket } });
  for (let i = 0; i < count; i += AT_ONCE) {
    const names = Array.from({ length: Math.min(AT_ONCE, count - i) }, (_, at) => `f-${i + at}`);
    await Promise.all(names.map((name) => user.upload(bucket, name, randomBytes(BYTES))));
  }
}

test('two long restores keep no third account out', async (t) => {
  const accounts = await Promise.all([1, 2, 3].map(() => lost.user.register()));
  const [one, other, victim] = accounts.map(({ api_key }) => lost.user.as(api_key)) as [
    CheckedClient,
    CheckedClient,
    CheckedClient,
  ];
  await fill(victim, 'small', 1);
  await fill(one, 'much', MANY);
  await fill(other, 'much', MANY);
  const [first, second, third] = [await lost.point(), await lost.point(), await lost.point()];
  let isOver = false;
  const began = performance.now();
  const seconds = () => ((performance.now() - began) / 1000).toFixed(1);
  const restore = (user: CheckedClient, bucket: string, { point_id }: { point_id: string }) =>
    user.expect(200, `/api/buckets/${bucket}/restore`, { json: { point_id, to_bucket: `${bucket}-again` } });
  const long = [restore(one, 'much', first), restore(other, 'much', second)];
  const end = () => {
    isOver = true;
  };
  const ended = long.map((each) => each.then(end));
  const begun = async (user: CheckedClient) =>
    (await user.call('/api/buckets/much-again')).body.object_count > 0 || undefined;
  for (const user of [one, other]) await eventually('the restore has begun', () => begun(user));
  assert.equal((await restore(victim, 'small', third)).objects, 1);
  t.diagnostic(`the small restore ended after ${seconds()} s`);
  assert.equal(isOver, false, 'both go on');
  for (const { objects } of await Promise.all(long)) assert.equal(objects, MANY);
  await Promise.all(ended);
  t.diagnostic(`the long ones after ${seconds()} s`);
  for (const user of [one, other]) {
    assert.equal((await user.expect(200, '/api/buckets/much-again')).object_count, MANY);
  }
});

test('a restore tells its progress, and what is there when it is cancelled', async () => {
  const owner = lost.user.as((await lost.user.register()).api_key);
  await fill(owner, 'cancelled', MANY);
  const { point_id } = await lost.point();
  const json = { point_id, to_bucket: 'cancelled-again' };
  const at = '/api/buckets/cancelled/restore';
  const later = { json, headers: { prefer: 'respond-async' } };
  const begun = await owner.expect(202, at, later);
  const path = `/api/operations/${begun.operation_id}`;
  const running = await eventually('it tells its progress', async () => {
    const now = await owner.expect(200, path);
    return now.progress === null || now.progress.done < 10 ? undefined : now;
  });
  assert.deepEqual([running.is_cancellable, running.progress.total], [true, MANY]);
  assert.ok(running.progress.bytes > 0 && running.progress.bytes < running.progress.total_bytes);
  const cancel = { method: 'POST' };
  const stranger = lost.user.as((await lost.user.register()).api_key);
  await stranger.refused(404, 'operation_not_found', [`${path}/cancel`, cancel]);
  const { state, error } = await owner.expect(200, `${path}/cancel?wait=30`, cancel);
  assert.deepEqual([state, error.code], ['failed', 'operation_cancelled']);
  const [, told] = /; (\d+) objects had been restored$/.exec(error.detail) ?? [];
  const { object_count: there } = await owner.expect(200, '/api/buckets/cancelled-again');
  assert.equal(Number(told), there, error.detail);
  assert.ok(there < MANY, `${there} are there`);
  assert.equal((await owner.expect(200, `${path}/cancel`, cancel)).state, 'failed');
  const rest = await owner.expect(200, at, { json });
  assert.deepEqual([rest.objects, rest.same], [MANY - there, there]);
});
