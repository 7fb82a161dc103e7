/** Two accounts restore much, each from a point of its own; a third one's small restore comes between. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { CheckedClient } from '../harness/checked-client.ts';
import { eventually } from '../harness/waiting.ts';
import { LosableCloud } from './recovery-kit.ts';

/** So many that a restore of them takes longer than the portion after which others may go first. */
const MANY = 3000;
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
    await Promise.all(names.map((name) => user.upload(bucket, name, `text of ${name}`)));
  }
}

test('two long restores keep no third account out', async () => {
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
  const restore = (user: CheckedClient, bucket: string, { point_id }: { point_id: string }) =>
    user.expect(200, `/api/buckets/${bucket}/restore`, { json: { point_id, to_bucket: `${bucket}-again` } });
  const long = [restore(one, 'much', first), restore(other, 'much', second)];
  const ended = long.map((each) => each.then(() => void (isOver = true)));
  const begun = async (user: CheckedClient) =>
    (await user.call('/api/buckets/much-again')).body.object_count > 0 || undefined;
  for (const user of [one, other]) await eventually('the restore has begun', () => begun(user));
  assert.equal((await restore(victim, 'small', third)).objects, 1);
  assert.equal(isOver, false, 'both go on');
  for (const { objects } of await Promise.all(long)) assert.equal(objects, MANY);
  await Promise.all(ended);
  for (const user of [one, other]) {
    assert.equal((await user.expect(200, '/api/buckets/much-again')).object_count, MANY);
  }
});
