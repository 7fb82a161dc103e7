import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Call } from '../../calls/principal.ts';
import { DiskShares } from '../../resources/disk-shares.ts';
import { openDatabaseFixture } from '../../testing/database-fixture.ts';

const GIB = 2 ** 30;

test('copies that nobody reads count for their account, which has one more than its share at most', async (t) => {
  const fixture = await openDatabaseFixture();
  t.after(() => fixture.close());
  const diskShares = new DiskShares({
    clock: fixture.clock,
    percent: 50,
    disk: () => ({ totalBytes: 100 * GIB, freeBytes: 10 * GIB }),
    trusted: async () => new Set<number>(),
    onError: (error) => assert.fail(String(error)),
  });
  const cloud = await fixture.open({
    diskShares,
    wrapEngine: (engine) => {
      const dump = engine.dump.bind(engine);
      engine.dump = async (...about) => ({ ...(await dump(...about)), sizeBytes: 13 * GIB });
      return engine;
    },
  });
  const [ann, bob] = [await fixture.newCall('ann'), await fixture.newCall('bob')];
  const read = Promise.withResolvers<void>();
  let begun = 0;
  const send = async () => {
    begun++;
    await read.promise;
  };
  const dumpOf = async (call: Call, name: string) => {
    const { database_id: id } = await cloud.creation.create(call, { name });
    return () =>
      cloud.dumps.dump(call.principal, id, { format: undefined, signal: new AbortController().signal, send });
  };
  const [first, second, others] = [await dumpOf(ann, 'a'), await dumpOf(ann, 'b'), await dumpOf(bob, 'c')];
  const sent = [first(), others()];
  while (begun < 2) await new Promise(setImmediate);
  const over = async () => {
    fixture.clock.advance(5000);
    return [...(await diskShares.over())].sort();
  };
  assert.deepEqual(await over(), [ann.principal.accountId, bob.principal.accountId]);
  await assert.rejects(second(), { code: 'out_of_space' });
  read.resolve();
  await Promise.all(sent);
  assert.deepEqual(await over(), []);
  await second();
});
