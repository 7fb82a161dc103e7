import assert from 'node:assert/strict';
import { test } from 'node:test';
import { by } from '../../testing/account-fixture.ts';
import { openStorageFixture } from '../../testing/storage-fixture.ts';
import { type LifecyclePreviewDeps, lifecyclePreviewRoutes } from './lifecycle-preview-routes.ts';
import { type SettingRoutesDeps, settingRoutes } from './setting-routes.ts';

const FOLDERS = ['a/', 'b/', 'c/', 'd/'];
const IN_EACH = 400;

test('of many changes of settings at once one is checked in a turn of the event loop', async () => {
  const [, route] = settingRoutes({} as SettingRoutesDeps);
  const principal = { canonicalId: 'id', username: 'name' };
  // A duplicate id is found once all rules are read.
  const rule = { id: 'twice', enabled: true, prefix: 'a/', days: 1 };
  const call = { principal, params: { name: 'many' }, body: { lifecycle: [rule, rule] } };
  let [turns, isOver] = [0, false];
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const answers = await Promise.allSettled(Array.from({ length: 20 }, () => route?.handler(call as never)));
  isOver = true;
  for (const { status } of answers) assert.equal(status, 'rejected');
  assert.ok(turns >= 20, `${turns} turns`);
});

test('a key that may see nothing has no more objects read than any other', async (t) => {
  const fixture = await openStorageFixture();
  t.after(() => fixture.close());
  const { metadata, buckets, clock } = fixture;
  const owner = await fixture.newPrincipal('owner');
  await buckets.create(by(owner), { name: 'many' });
  await fixture.put(owner, 'many', { name: 'first', bytes: Buffer.alloc(1) });
  const { id } = await buckets.find(owner, 'many');
  const current = await metadata.get<{ id: number }>('SELECT current AS id FROM objects');
  const names = FOLDERS.flatMap((folder) => Array.from({ length: IN_EACH }, (_, at) => `${folder}${at}`));
  await metadata.commit([
    {
      sql: `INSERT INTO objects (object_id, bucket_id, name, current, size_bytes, changed_at)
            SELECT 'obj-' || value, ?, value, ?, 7, 0 FROM json_each(?)`,
      params: [id, current?.id ?? 0, JSON.stringify(names)],
    },
  ]);
  let read = 0;
  const counted: Pick<LifecyclePreviewDeps['names'], 'objects'> = {
    objects: async (...asked) => {
      const page = await fixture.names.objects(...asked);
      read += page.rows.length;
      return page;
    },
  };
  const [route] = lifecyclePreviewRoutes({ buckets, clock, names: counted as LifecyclePreviewDeps['names'] });
  const lifecycle = FOLDERS.map((prefix) => ({ enabled: true, prefix, days: 1 }));
  const preview = async (bucketLimits: { bucket: string; prefix: string }[] | null) => {
    read = 0;
    const principal = { ...owner, bucketLimits };
    const call = { principal, params: { name: 'many' }, body: { lifecycle } };
    return (await route?.handler(call as never)) as { looked_at: number; is_cut: boolean };
  };
  const { looked_at: all, is_cut: isCut } = await preview(null);
  assert.deepEqual([all, read, isCut], [1000, 1000, true]);
  const limited = await preview([{ bucket: 'many', prefix: 'none/' }]);
  assert.deepEqual([limited.looked_at, read, limited.is_cut], [0, 1000, true]);
});
