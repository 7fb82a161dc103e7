/** Many simultaneous calls about databases, also while their engine is away or fails. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { AppError } from '../platform/errors.ts';
import { by } from '../testing/account-fixture.ts';
import {
  type DatabaseFixture,
  TEST_DATABASE_GRACE_MS,
  withDatabaseFixture,
} from '../testing/database-fixture.ts';
import { eventually } from '../testing/eventually.ts';
import type { Engine } from './engine.ts';

const rowsOf = (fixture: DatabaseFixture, accountId: number) =>
  fixture.store.listOf(accountId, false, { after: 0, limit: 100 });

describe('creating', () => {
  test('50 at once at a limit of 5: exactly 5', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      await fixture.limit(ann, 5);
      const requests = Array.from({ length: 50 }, (_, i) => cloud.creation.create(ann, { name: `d${i}` }));
      const codes = (await Promise.allSettled(requests)).map((one) =>
        one.status === 'fulfilled' ? 'made' : (one.reason as AppError).code,
      );
      assert.equal(codes.filter((code) => code === 'made').length, 5);
      assert.equal(codes.filter((code) => code === 'quota_exceeded').length, 45);
      assert.deepEqual([fixture.disk.databases.size, await fixture.counted(ann)], [5, 5]);
    }));

  test('20 at once of one name: exactly one', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const requests = Array.from({ length: 20 }, () => cloud.creation.create(ann, { name: 'shop' }));
      const codes = (await Promise.allSettled(requests)).map((one) =>
        one.status === 'fulfilled' ? 'made' : (one.reason as AppError).code,
      );
      assert.equal(codes.filter((code) => code === 'made').length, 1);
      assert.equal(codes.filter((code) => code === 'database_exists').length, 19);
      assert.equal(await fixture.counted(ann), 1);
    }));

  test('leaves nothing when a step of the engine fails, also when it cannot clean up yet', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      cloud.scripted.script('drop', () => Promise.reject(new Error('cannot drop')));
      let isProvisioned = false;
      cloud.scripted.script('provision', async () => {
        isProvisioned = true;
        throw new AppError('out_of_space', 'The disk is full');
      });
      await assert.rejects(cloud.creation.create(ann, { name: 'shop' }), { code: 'out_of_space' });
      assert.ok(isProvisioned);
      assert.deepEqual(await rowsOf(fixture, ann.principal.accountId), []);
      assert.equal(await fixture.counted(ann), 0);
      cloud.scripted.script('drop');
      cloud.scripted.script('provision');
      await cloud.creation.create(ann, { name: 'shop' });
      await cloud.supervisor.check();
      const { count } = (await fixture.metadata.get<{ count: number }>(
        'SELECT count(*) AS count FROM databases',
      )) ?? { count: -1 };
      assert.equal(count, 1, 'the row of the failed one is gone');
    }));

  test('is ready once the engine has answered for it, and leaves nothing when it does not', () =>
    withDatabaseFixture(async (fixture) => {
      const tables = () =>
        Promise.reject(new AppError('engine_unavailable', 'The database cannot be opened now'));
      const wrapEngine = (engine: Engine) => Object.assign(engine, { tables });
      const cloud = await fixture.open({ wrapEngine });
      const ann = await fixture.newCall('ann');
      await assert.rejects(cloud.creation.create(ann, { name: 'shop' }), { code: 'engine_unavailable' });
      assert.deepEqual(await rowsOf(fixture, ann.principal.accountId), []);
      assert.deepEqual([fixture.disk.databases.size, await fixture.counted(ann)], [0, 0]);
    }));

  test('goes on when a server takes long to start: after a failure, a restart, and not after its deletion', () =>
    withDatabaseFixture(async (fixture) => {
      const slow = {
        tellMs: 20,
        wrapEngine: (engine: Engine) => Object.assign(engine, { startsServers: true }),
      };
      const cloud = await fixture.open(slow);
      const ann = await fixture.newCall('ann');
      const { promise: started, resolve: start, reject: fail } = Promise.withResolvers<void>();
      cloud.scripted.script('provision', () => started);
      const made = await cloud.creation.create(ann, { name: 'shop' });
      assert.equal(made.state, 'creating');
      assert.match(made.state_reason?.message ?? '', /^Starting SQLite for the first time/);
      assert.ok(made.connection.password);
      const stateOf = async () => (await rowsOf(fixture, ann.principal.accountId))[0];
      fail(new Error('Connection terminated unexpectedly'));
      await eventually(async () => /Cloudlet retries/.test((await stateOf())?.reason_message ?? ''));
      assert.doesNotMatch((await stateOf())?.reason_message ?? '', /terminated/);
      // A restart of Cloudlet.
      const next = await fixture.open(slow);
      await next.supervisor.recover();
      assert.equal((await stateOf())?.state, 'creating');
      await next.supervisor.check();
      const row = await stateOf();
      assert.deepEqual([row?.state, row?.reason_code, row?.reason_message], ['ready', null, null]);
      assert.deepEqual([fixture.disk.databases.size, await fixture.counted(ann)], [1, 1]);
      assert.deepEqual(next.announced, ['database.created']);
      // Deleted while a caller waits for it.
      next.scripted.script('provision', () => new Promise<void>(() => {}));
      const late = await next.creation.create(ann, { name: 'late' });
      assert.equal(late.state, 'creating');
      assert.equal((await next.deleter.remove(ann, late.database_id)).state, 'deleting');
      await next.supervisor.check();
      assert.equal((await rowsOf(fixture, ann.principal.accountId)).length, 1);
      start();
    }));

  test('that failed and is tried again can be deleted meanwhile, and counts no more', () =>
    withDatabaseFixture(async (fixture) => {
      const wrapEngine = (engine: Engine) => Object.assign(engine, { startsServers: true });
      const cloud = await fixture.open({ tellMs: 20, wrapEngine });
      const ann = await fixture.newCall('ann');
      const { promise: started, reject: fail } = Promise.withResolvers<void>();
      cloud.scripted.script('provision', () => started);
      const made = await cloud.creation.create(ann, { name: 'shop' });
      fail(new Error('Connection terminated unexpectedly'));
      const stateOf = async () => (await rowsOf(fixture, ann.principal.accountId))[0];
      await eventually(async () => /Cloudlet retries/.test((await stateOf())?.reason_message ?? ''));
      assert.equal((await cloud.deleter.remove(ann, made.database_id)).state, 'deleting');
      await cloud.supervisor.check();
      assert.deepEqual(await rowsOf(fixture, ann.principal.accountId), []);
      assert.deepEqual([fixture.disk.databases.size, await fixture.counted(ann)], [0, 0]);
    }));

  test('waits for an engine that the host prepares, and has its version then', () =>
    withDatabaseFixture(async (fixture) => {
      const wrapEngine = (engine: Engine) => Object.assign(engine, { startsServers: true });
      const cloud = await fixture.open({ tellMs: 20, wrapEngine });
      const ann = await fixture.newCall('ann');
      cloud.scripted.preparing = { percent: 12, step: 'fetching packages' };
      const made = await cloud.creation.create(ann, { name: 'shop' });
      assert.deepEqual([made.state, made.version], ['creating', null]);
      assert.match(made.state_reason?.message ?? '', /^Waiting for SQLite, which this host is installing/);
      assert.equal(fixture.disk.databases.size, 0);
      const copy = { name: 'copy', from: { database_id: made.database_id } };
      await assert.rejects(cloud.creation.create(ann, copy), { code: 'database_not_ready' });
      cloud.scripted.preparing = undefined;
      const rowOf = async () => (await rowsOf(fixture, ann.principal.accountId))[0];
      await eventually(async () => (await rowOf())?.state === 'ready');
      assert.equal((await rowOf())?.version, '1');
    }));

  test('is not undone by the look-over while it is under way', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      let looked: Promise<void> | undefined;
      cloud.scripted.script('prepare', async () => {
        looked = cloud.supervisor.check();
      });
      const { state } = await cloud.creation.create(ann, { name: 'shop' });
      await looked;
      await cloud.supervisor.check();
      assert.equal(state, 'ready');
      assert.equal((await rowsOf(fixture, ann.principal.accountId))[0]?.state, 'ready');
    }));

  test('as a copy: of the same engine, not smaller, of the caller alone', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const [ann, bob] = [await fixture.newCall('ann'), await fixture.newCall('bob')];
      const { database_id } = await cloud.creation.create(ann, { name: 'shop', size_limit_mb: 7 });
      const from = { database_id };
      const copy = await cloud.creation.create(ann, { name: 'copy', from });
      assert.deepEqual([copy.engine, copy.size_limit_mb], ['sqlite', 7]);
      await assert.rejects(cloud.creation.create(ann, { name: 'x', engine: 'mysql', from }), {
        code: 'invalid_request',
        message: /engine: must be sqlite/,
      });
      await assert.rejects(cloud.creation.create(bob, { name: 'copy', from }), {
        code: 'database_not_found',
      });
    }));
});

describe('an engine that is away', () => {
  test('takes a rotation when it is back; the row has the new password at once', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const { database_id: id, connection } = await cloud.creation.create(ann, { name: 'shop' });
      cloud.scripted.isAway = true;
      const stored: string[] = [];
      const entry = { statements: () => [], stored: () => void stored.push('the entry') };
      await assert.rejects(cloud.databases.rotate({ ...ann, entry }, id), (error: AppError) => {
        assert.equal(error.code, 'engine_unavailable');
        assert.deepEqual(stored, ['the entry'], 'in the commit of the new password');
        assert.match(`${error.message} ${error.hint}`, /once the engine is available.*credentials/);
        return true;
      });
      const { connection: next } = await cloud.databases.credentials(ann.principal, id);
      assert.notEqual(next.password, connection.password);
      await cloud.supervisor.check();
      cloud.scripted.isAway = false;
      const restarted = await fixture.open();
      await restarted.supervisor.check();
      assert.deepEqual(fixture.disk.read(next.database, next.password ?? ''), []);
      assert.throws(() => fixture.disk.read(next.database, connection.password ?? ''), /not let in/);
      const after = await restarted.databases.credentials(ann.principal, id);
      assert.equal(after.connection.password, next.password);
    }));

  test('does not hold up a change of name, limit or protection', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const { database_id: id } = await cloud.creation.create(ann, { name: 'shop' });
      cloud.scripted.isAway = true;
      const changed = await cloud.databases.change(ann, id, { name: 'store', size_limit_mb: 5 });
      assert.deepEqual([changed.name, changed.size_limit_mb], ['store', 5]);
      cloud.scripted.isAway = false;
      await cloud.supervisor.check();
      assert.deepEqual(
        [...fixture.disk.databases.values()].map((one) => one.sizeLimitBytes),
        [5 * 2 ** 20],
      );
    }));

  test('lets a database be deleted', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const { database_id: id } = await cloud.creation.create(ann, { name: 'shop' });
      cloud.scripted.isAway = true;
      assert.equal((await cloud.deleter.remove(ann, id)).state, 'deleting');
      await cloud.turns.idle();
      cloud.scripted.isAway = false;
      await cloud.supervisor.check();
      assert.equal(fixture.disk.databases.size, 0);
    }));
});

test('a database that its engine cannot open again and again is in error until it can', () =>
  withDatabaseFixture(async (fixture) => {
    const cloud = await fixture.open();
    const ann = await fixture.newCall('ann');
    const { database_id: id } = await cloud.creation.create(ann, { name: 'shop' });
    cloud.scripted.script('restrict', () => Promise.reject(new Error('the file is damaged')));
    await cloud.databases.change(ann, id, { size_limit_mb: 5 });
    const state = async () => {
      fixture.clock.advance(3_600_000);
      await cloud.supervisor.check();
      return (await cloud.databases.describe(ann.principal, id)).state;
    };
    assert.deepEqual([await state(), await state(), await state()], ['ready', 'ready', 'error']);
    const { state_reason } = await cloud.databases.describe(ann.principal, id);
    assert.equal(state_reason?.code, 'engine_failed');
    await assert.rejects(cloud.databases.rotate(ann, id), { code: 'database_not_ready' });
    assert.equal(await state(), 'error');
    cloud.scripted.script('restrict');
    assert.equal(await state(), 'ready');
    assert.equal((await cloud.databases.describe(ann.principal, id)).state_reason, null);
    assert.deepEqual(
      [...fixture.disk.databases.values()].map((one) => one.sizeLimitBytes),
      [5 * 2 ** 20],
    );
  }));

describe('a load', () => {
  const signal = new AbortController().signal;

  test('that is no dump, or larger than the database may be, leaves what was there', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const { database_id: id, connection } = await cloud.creation.create(ann, {
        name: 'shop',
        size_limit_mb: 1,
      });
      const load = (dump: string | Uint8Array) =>
        cloud.dumps.load(ann.principal, id, { dump: Readable.from([Buffer.from(dump)]), signal });
      await load('scripted dump\none');
      await assert.rejects(load('nonsense'), { code: 'load_failed' });
      const large = `scripted dump\n${'x'.repeat(2 ** 20)}`;
      await assert.rejects(load(large), { code: 'payload_too_large', message: /1 MB/ });
      const members = Buffer.concat(Array.from({ length: 60_000 }, () => gzipSync('')));
      await assert.rejects(load(gzipSync(members)), { code: 'payload_too_large' });
      assert.deepEqual(fixture.disk.read(connection.database, connection.password ?? ''), ['one']);
    }));

  test('ends when its caller leaves', () =>
    withDatabaseFixture(async (fixture) => {
      const cloud = await fixture.open();
      const ann = await fixture.newCall('ann');
      const { database_id: id } = await cloud.creation.create(ann, { name: 'shop' });
      const caller = new AbortController();
      const dump = Readable.from([Buffer.from('scripted dump\none')]);
      cloud.scripted.script('load', async () => caller.abort());
      await assert.rejects(cloud.dumps.load(ann.principal, id, { dump, signal: caller.signal }));
      cloud.scripted.script('load');
      assert.equal((await cloud.databases.describe(ann.principal, id)).state, 'ready');
    }));
});

test('an account reads four dumps at a time: another waits a minute, and nobody else does', (t) =>
  withDatabaseFixture(async (fixture) => {
    const cloud = await fixture.open();
    const readers = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
    let sent = 0;
    const dumpOf = async (name: string, read: Promise<void>) => {
      const { principal } = await fixture.newCall(name);
      const { database_id: id } = await cloud.creation.create(by(principal), { name: 'shop' });
      const send = async () => {
        sent++;
        await read;
      };
      const { signal } = new AbortController();
      return () => cloud.dumps.dump(principal, id, { format: undefined, signal, send });
    };
    const ann = await dumpOf('ann', readers[0].promise);
    const bob = await dumpOf('bob', readers[1].promise);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const all = Array.from({ length: 5 }, ann);
    const others = bob();
    while (sent < 5) await new Promise(setImmediate);
    t.mock.timers.tick(60_000);
    t.mock.timers.reset();
    await assert.rejects(all.at(-1) as Promise<void>, { code: 'overloaded' });
    const waiting = ann();
    readers[0].resolve();
    readers[1].resolve();
    await Promise.all([...all.slice(0, 4), others, waiting]);
    assert.equal(sent, 6);
  }));

test('what no row knows is removed from the engine after a while', () =>
  withDatabaseFixture(async (fixture) => {
    const cloud = await fixture.open();
    const ann = await fixture.newCall('ann');
    await cloud.creation.create(ann, { name: 'shop' });
    const held = { password: 'x', access: 'full', sizeLimitBytes: 1, rows: [] } as const;
    fixture.disk.databases.set('d_stray', { ...held });
    await cloud.kept.keep('db-stray', Readable.from([Buffer.from('x')]));
    await cloud.supervisor.sweepOrphans();
    assert.equal(fixture.disk.databases.size, 2);
    fixture.clock.advance(TEST_DATABASE_GRACE_MS);
    await cloud.supervisor.sweepOrphans();
    assert.deepEqual([fixture.disk.databases.size, (await cloud.kept.list()).length], [1, 0]);
    assert.ok(!fixture.disk.databases.has('d_stray'));
  }));

test('closing ends long work and waits for it', () =>
  withDatabaseFixture(async (fixture) => {
    const cloud = await fixture.open();
    const ann = await fixture.newCall('ann');
    const { database_id } = await cloud.creation.create(ann, { name: 'shop' });
    const forking = Promise.withResolvers<void>();
    cloud.scripted.script('fork', (signal) => {
      forking.resolve();
      return new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(new Error('interrupted')));
      });
    });
    const copy = cloud.creation.create(ann, { name: 'copy', from: { database_id } });
    const refused = assert.rejects(copy, { code: 'shutting_down' });
    await forking.promise;
    await cloud.turns.close();
    await refused;
    assert.equal((await rowsOf(fixture, ann.principal.accountId)).length, 1);
  }));
