import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBillingFixture } from '../../testing/billing-fixture.ts';
import { randomFrom } from '../../testing/random.ts';
import { METERS } from './meters.ts';
import { ticksOf } from './steady-clock.ts';
import { UsageStore } from './usage-store.ts';

const METER = 'storage';

test('changes of one moment add up the same in one batch as one after the other', async (t) => {
  const { metadata, close } = await openBillingFixture();
  t.after(close);
  const store = new UsageStore(metadata);
  const lines = ['together', 'single'];
  const open = (name: string) =>
    store.open({ meter: METER, resourceId: name, accountId: 1, name, variant: '', level: 0, now: 0 });
  await metadata.commit(lines.map(open));
  const rateUsage = async (now: number) => {
    const charged = (await Array.fromAsync(store.linePages(1))).flat().map((line) => ({
      meter: line.meter,
      resourceId: line.resource_id,
      now,
      carry: 0n,
      quantity: BigInt(line.pending) + BigInt(line.level) * (BigInt(now) - BigInt(line.level_since)),
    }));
    await metadata.commit(charged.map((line) => store.storeRated(line)));
  };
  const random = randomFrom(7);
  let level = 0;
  for (let now = 0; now < 200; now += random(3)) {
    if (random(2) === 0) await rateUsage(now);
    const deltas = Array.from({ length: 1 + random(5) }, () => {
      const delta = random(3) === 0 ? -level : random(50);
      level += delta;
      return delta;
    });
    const change = (name: string, delta: number) =>
      metadata.commit([store.change({ meter: METER, resourceId: name }, delta, now)]);
    await Promise.all(deltas.map((delta) => change('together', delta)));
    for (const delta of deltas) await change('single', delta);
    const [together, single] = (await Array.fromAsync(store.linePages(1))).flat().map((line) => ({
      used: [line.level, line.pending, line.level_since],
      settledTo: Number(line.settled_to),
    }));
    assert.deepEqual(together?.used, single?.used);
    assert.equal(together?.settledTo, single?.settledTo, 'from the same time on');
  }
});

test('the lines of an account come in pages, and the event loop turns between them', async (t) => {
  const fixture = await openBillingFixture();
  t.after(fixture.close);
  const { metadata, usageStore, steady } = fixture;
  const now = ticksOf(METERS.storage, steady.now());
  const line = { meter: 'storage', accountId: 1, name: 'b', variant: '', level: 1, now } as const;
  const ids = Array.from({ length: 600 }, (_, i) => `${i}`);
  await metadata.commit(ids.map((resourceId) => usageStore.open({ ...line, resourceId })));
  let turns = 0;
  const seen: { count: number; turns: number }[] = [];
  const found = new Set<string>();
  for await (const lines of usageStore.linePages(1)) {
    setImmediate(() => turns++);
    seen.push({ count: lines.length, turns });
    for (const { resource_id } of lines) found.add(resource_id);
  }
  assert.deepEqual(seen, [
    { count: 250, turns: 0 },
    { count: 250, turns: 1 },
    { count: 100, turns: 2 },
  ]);
  assert.deepEqual([...found].sort(), ids.sort());
  assert.deepEqual((await Array.fromAsync(usageStore.linePages(2))).flat(), []);
});
