/** Deleting and undeleting databases while an engine fails, is full, or is slow. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { AppError } from '../../platform/errors.ts';
import { type DatabaseCloud, TEST_KEEP_MS, withDatabaseFixture } from '../../testing/database-fixture.ts';
import { DumpsMissing } from '../engine.ts';

const DUMP = 'scripted dump\nloaded';

async function make(cloud: DatabaseCloud, ann: Call, name = 'shop'): Promise<string> {
  const { database_id: id } = await cloud.creation.create(ann, { name });
  const signal = new AbortController().signal;
  await cloud.queries.run(ann.principal, id, { input: { statement: 'one', read_only: false }, signal });
  return id;
}

/** Resolves when the method was called; the call then waits until it is aborted, or forever. */
function stuck(cloud: DatabaseCloud, method: 'load' | 'fork' | 'dump'): Promise<void> {
  return new Promise((called) => {
    cloud.scripted.script(method, (signal) => {
      called();
      return new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('the engine was interrupted')));
      });
    });
  });
}

describe('a deleted database', () => {
  test('is listed apart until its time is up, then it is gone for good', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      const deleted = await cloud.deleter.remove(ann, id);
      assert.equal(deleted.state, 'deleting');
      assert.ok(deleted.deletes_at);
      await assert.rejects(cloud.databases.describe(ann.principal, id), (error: AppError) => {
        assert.equal(error.code, 'database_not_found');
        assert.match(error.hint ?? '', /undelete/);
        return true;
      });
      await assert.rejects(cloud.deleter.remove(ann, id), { code: 'database_not_found' });
      const names = async (kept: boolean) => {
        const list = cloud.databases.list(ann.principal, kept, { after: 0, limit: 10 });
        return (await Array.fromAsync(list)).map((entry) => entry.toJSON().name);
      };
      assert.deepEqual([await names(false), await names(true)], [[], ['shop']]);
      await cloud.turns.idle();
      fixture.clock.advance(TEST_KEEP_MS + 1);
      await cloud.supervisor.check();
      await assert.rejects(cloud.deleter.undelete(ann, id, {}), { code: 'database_not_found' });
      assert.deepEqual([await names(false), await names(true)], [[], []]);
      assert.deepEqual(await cloud.kept.list(), []);
    }));

  test('lets the oldest last dumps of its account go when they are too many bytes, and nobody else’s', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open({ keptBytes: 40 });
      const [ann, bob] = [await fixture.newCall('ann'), await fixture.newCall('bob')];
      const remove = async (who: Call, name: string) => {
        const id = await make(cloud, who, name);
        await cloud.deleter.remove(who, id);
        await cloud.turns.idle();
        fixture.clock.advance(60_000);
        await cloud.deleter.count();
        return id;
      };
      const theirs = await remove(bob, 'theirs');
      const ids: string[] = [];
      for (const name of ['a', 'b', 'c', 'd']) ids.push(await remove(ann, name));
      await cloud.supervisor.check();
      await cloud.turns.idle();
      assert.deepEqual([...(await cloud.kept.list())].sort(), [theirs, ...ids.slice(2)].sort());
      await assert.rejects(cloud.deleter.undelete(ann, ids[0] ?? '', {}), { code: 'database_not_found' });
      assert.equal((await cloud.deleter.undelete(ann, ids[3] ?? '', {})).state, 'ready');
    }));

  test('costs what its last dump takes until it is gone', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      const sql =
        "SELECT level, is_closed FROM usage_lines WHERE meter = 'database.storage' AND resource_id = ?";
      const line = async () => {
        const row = await fixture.metadata.get<{ level: number; is_closed: number }>(sql, id);
        return row && [Number(row.level), row.is_closed];
      };
      await cloud.deleter.remove(ann, id);
      await cloud.turns.idle();
      const [kept] = await Array.fromAsync(
        cloud.databases.list(ann.principal, true, { after: 0, limit: 10 }),
        (entry) => entry.toJSON().kept_bytes,
      );
      assert.ok(typeof kept === 'number' && kept > 0, String(kept));
      assert.deepEqual(await line(), [kept, 0]);
      const { size_bytes } = await cloud.deleter.undelete(ann, id, {});
      assert.deepEqual(await line(), [size_bytes, 0]);
      await cloud.deleter.remove(ann, id);
      await cloud.turns.idle();
      await cloud.deleter.remove(ann, id, { keep: false });
      await cloud.turns.idle();
      assert.deepEqual((await line()) ?? [0, 1], [0, 1]);
    }));

  test('is not kept where the operator chose so', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open({ keepMs: 0 });
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      assert.equal((await cloud.deleter.remove(ann, id)).deletes_at, null);
      await cloud.turns.idle();
      assert.equal(await fixture.store.find(id), undefined);
      assert.equal(fixture.disk.databases.size, 0);
    }));

  test('stays in its engine, closed, until its time is up where the engine has no dumps', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      let asked = 0;
      cloud.scripted.script('dump', async () => {
        asked++;
        throw new DumpsMissing('no pg_dump here', 'install it');
      });
      const remove = async () => {
        await cloud.deleter.remove(ann, id);
        await cloud.turns.idle();
        assert.deepEqual(
          [...fixture.disk.databases.values()].map(({ access }) => access),
          ['none'],
        );
      };
      await remove();
      await cloud.supervisor.check();
      assert.equal(asked, 1, 'it is not tried again');
      assert.equal((await cloud.deleter.undelete(ann, id, {})).state, 'ready');
      assert.deepEqual(
        [...fixture.disk.databases.values()].map(({ access }) => access),
        ['full'],
      );
      await remove();
      fixture.clock.advance(TEST_KEEP_MS + 1);
      await cloud.supervisor.check();
      assert.equal(fixture.disk.databases.size, 0);
    }));

  test('is kept as long when the clock jumps', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      await cloud.deleter.remove(ann, id);
      await cloud.turns.idle();
      fixture.clock.jump(4 * TEST_KEEP_MS);
      await cloud.supervisor.check();
      fixture.clock.advance(TEST_KEEP_MS / 2);
      await cloud.supervisor.check();
      assert.deepEqual(await cloud.kept.list(), [id], 'half of its time is left');
      // Another start, with a clock that is wrong by as much.
      const later = await fixture.open();
      await later.supervisor.check();
      fixture.clock.jump(-4 * TEST_KEEP_MS);
      fixture.clock.advance(TEST_KEEP_MS / 4);
      await later.supervisor.check();
      const row = await fixture.store.find(id);
      assert.equal(row?.deletes_at, fixture.clock.now() + TEST_KEEP_MS / 4);
      assert.equal((await later.deleter.undelete(ann, id, {})).state, 'ready');
    }));

  test('goes at once, dump and all, when its owner wants none kept', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      assert.equal((await cloud.deleter.remove(ann, id, { keep: false })).deletes_at, null);
      await cloud.turns.idle();
      assert.deepEqual([fixture.disk.databases.size, await cloud.kept.list()], [0, []]);
      const other = await make(cloud, ann);
      await cloud.deleter.remove(ann, other);
      await cloud.turns.idle();
      assert.deepEqual(await cloud.kept.list(), [other]);
      const eve = await fixture.newCall('eve');
      const stolen = cloud.deleter.remove(eve, other, { keep: false });
      await assert.rejects(stolen, { code: 'database_not_found' });
      await cloud.deleter.remove(ann, other, { keep: false });
      await cloud.turns.idle();
      assert.deepEqual([await cloud.kept.list(), await fixture.store.find(other)], [[], undefined]);
    }));

  test('is refused while there is no space for its dump, and goes without one', () =>
    withDatabaseFixture(async (fixture) => {
      let isFull = false;
      const assertSpace = () => {
        if (isFull) throw new AppError('out_of_space', 'full');
      };
      const cloud = await fixture.open({ assertSpace });
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      isFull = true;
      await assert.rejects(cloud.deleter.remove(ann, id), (error: AppError) => {
        assert.equal(error.code, 'out_of_space');
        assert.match(error.hint ?? '', /keep=false/);
        return true;
      });
      assert.equal((await cloud.databases.describe(ann.principal, id)).state, 'ready');
      await cloud.deleter.remove(ann, id, { keep: false });
      await cloud.turns.idle();
      assert.equal(fixture.disk.databases.size, 0);
    }));

  test('stays in its engine, closed, when the space for its dump has gone meanwhile', () =>
    withDatabaseFixture(async (fixture) => {
      let isFull = false;
      const assertSpace = (bytes: number) => {
        if (isFull && bytes > 0) throw new AppError('out_of_space', 'full');
      };
      const cloud = await fixture.open({ assertSpace });
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      cloud.scripted.script('restrict', async () => {
        isFull = true;
      });
      await cloud.deleter.remove(ann, id);
      await cloud.turns.idle();
      assert.deepEqual(
        [...fixture.disk.databases.values()].map(({ access }) => access),
        ['none'],
      );
      assert.equal(cloud.reports.length, 1, 'the operator is told');
      cloud.scripted.script('restrict');
      isFull = false;
      await cloud.supervisor.check();
      assert.equal(fixture.disk.databases.size, 0);
      assert.deepEqual(await cloud.kept.list(), [id]);
    }));

  test('comes back under another name when its own was given again', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      const { connection } = await cloud.databases.credentials(ann.principal, id);
      await cloud.deleter.remove(ann, id);
      await cloud.turns.idle();
      const other = (await cloud.creation.create(ann, { name: 'shop' })).database_id;
      await assert.rejects(cloud.deleter.undelete(ann, id, {}), (error: AppError) => {
        assert.equal(error.code, 'database_exists');
        assert.match(error.hint ?? '', /name/);
        return true;
      });
      const back = await cloud.deleter.undelete(ann, id, { name: 'shop-old' });
      assert.deepEqual([back.name, back.state, back.deletes_at], ['shop-old', 'ready', null]);
      assert.deepEqual(fixture.disk.read(connection.database, connection.password ?? ''), ['one']);
      assert.deepEqual(await cloud.kept.list(), []);
      await assert.rejects(cloud.deleter.undelete(ann, other, {}), { code: 'database_not_found' });
    }));

  test('needs its share of the quota to come back', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      await cloud.deleter.remove(ann, id);
      await fixture.limit(ann, 1);
      const other = await make(cloud, ann, 'other');
      await assert.rejects(cloud.deleter.undelete(ann, id, {}), { code: 'quota_exceeded' });
      await cloud.deleter.remove(ann, other);
      await cloud.deleter.undelete(ann, id, {});
      assert.equal(await fixture.counted(ann), 1);
    }));

  test('is brought back while its dump is still being made', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      const dumping = stuck(cloud, 'dump');
      await cloud.deleter.remove(ann, id);
      await dumping;
      assert.equal((await cloud.deleter.undelete(ann, id, {})).state, 'ready');
      assert.deepEqual(
        [...fixture.disk.databases.values()].map(({ access }) => access),
        ['full'],
      );
      assert.deepEqual(cloud.reports, []);
    }));
});

describe('a deletion', () => {
  test('ends a load under way', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      const loading = stuck(cloud, 'load');
      const dump = Readable.from([Buffer.from(DUMP)]);
      const load = cloud.dumps.load(ann.principal, id, { dump, signal: new AbortController().signal });
      const refused = assert.rejects(load, { code: 'database_not_ready' });
      await loading;
      assert.equal((await cloud.deleter.remove(ann, id)).state, 'deleting');
      await refused;
    }));

  test('ends a copy that is being made of it, of which nothing is left', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      const forking = stuck(cloud, 'fork');
      const copy = cloud.creation.create(ann, { name: 'copy', from: { database_id: id } });
      const refused = assert.rejects(copy, { code: 'database_not_ready' });
      await forking;
      await cloud.deleter.remove(ann, id);
      await refused;
      await cloud.turns.idle();
      assert.deepEqual([fixture.disk.databases.size, await fixture.counted(ann)], [0, 0]);
    }));

  test('that was deleted right before it is copied is what the copy is told of', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      cloud.scripted.script('provision', async () => void (await cloud.deleter.remove(ann, id)));
      cloud.scripted.script('fork', async () => {
        throw new Error('the engine ended the connection');
      });
      const copy = cloud.creation.create(ann, { name: 'copy', from: { database_id: id } });
      await assert.rejects(copy, { code: 'database_not_ready' });
      await cloud.turns.idle();
      assert.deepEqual([fixture.disk.databases.size, await fixture.counted(ann)], [0, 0]);
    }));

  test('of a copy still being made undoes it', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      const forking = stuck(cloud, 'fork');
      const copy = cloud.creation.create(ann, { name: 'copy', from: { database_id: id } });
      const refused = assert.rejects(copy, { code: 'database_not_ready' });
      await forking;
      const [, creating] = await fixture.store.listOf(ann.principal.accountId, false, { after: 0, limit: 9 });
      assert.equal(creating?.state, 'creating');
      const { state } = await cloud.deleter.remove(ann, creating?.database_id ?? '');
      assert.equal(state, 'deleting');
      await refused;
      assert.deepEqual([fixture.disk.databases.size, await fixture.counted(ann)], [1, 1]);
    }));

  test('is refused while the database is protected', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const id = await make(cloud, ann);
      await cloud.databases.change(ann, id, { delete_protection: true });
      await assert.rejects(cloud.deleter.remove(ann, id), { code: 'delete_protected' });
      await cloud.databases.change(ann, id, { delete_protection: false });
      await cloud.deleter.remove(ann, id);
    }));
});
