import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, test } from 'node:test';
import { DirectoryTarget } from '../../drivers/recovery-directory/directory-target.ts';
import { FakeClock } from '../../platform/clock.ts';
import { eventually } from '../../testing/eventually.ts';
import { Lease } from './lease.ts';

const SILENCE_MS = 60_000;
const root = mkdtempSync(join(tmpdir(), 'cloudlet-lease-'));
after(() => rmSync(root, { recursive: true }));

let location: string;
let count = 0;
beforeEach(() => {
  location = join(root, String(++count));
});

function writer(cloud: string, silenceMs = SILENCE_MS) {
  const clock = new FakeClock();
  const target = new DirectoryTarget(location);
  return {
    clock,
    lease: new Lease({ target, clock, cloud: async () => cloud, host: `host of ${cloud}`, silenceMs }),
  };
}

const inUse = { code: 'target_in_use' };

test('one cloud writes at a time; within it, several at once', async () => {
  const [a, b] = [writer('a'), writer('b')];
  const [first, second] = await Promise.all([a.lease.hold(), a.lease.hold()]);
  await assert.rejects(b.lease.hold(), { ...inUse, message: /on host of a,/ });
  await first.release();
  await first.release();
  await assert.rejects(b.lease.hold(), inUse);
  await second.release();
  const taken = await b.lease.hold();
  await taken.assertHeld();
  await assert.rejects(a.lease.hold(), inUse);
});

test('of many who try at once, one succeeds', async () => {
  const tries = Array.from({ length: 20 }, (_, i) => writer(`cloud ${i}`).lease.hold());
  const ended = await Promise.allSettled(tries);
  assert.equal(ended.filter(({ status }) => status === 'fulfilled').length, 1);
});

test('a writer that is silent is dead, by the clock of whoever looks; it notices when it is not', async () => {
  const [a, b] = [writer('a'), writer('b')];
  const held = await a.lease.hold();
  await assert.rejects(b.lease.hold(), inUse);
  b.clock.advance(SILENCE_MS - 1);
  await assert.rejects(b.lease.hold(), inUse);
  b.clock.advance(1);
  const taken = await b.lease.hold();
  await taken.assertHeld();
  await assert.rejects(held.assertHeld(), inUse);
  assert.ok(held.signal.aborted);
  // Its end does not take the lease from the other.
  await held.release();
  await taken.assertHeld();
  await assert.rejects(a.lease.hold(), inUse);
});

test('a writer that lives says so again and again', async () => {
  const [a, b] = [writer('a', 300), writer('b', 300)];
  const held = await a.lease.hold();
  const text = () =>
    readdirSync(join(location, 'writers')).map((name) =>
      readFileSync(join(location, 'writers', name), 'utf8'),
    );
  for (let i = 0; i < 3; i++) {
    await assert.rejects(b.lease.hold(), inUse);
    const before = text().join();
    await eventually(() => text().join() !== before);
    b.clock.advance(300);
    await assert.rejects(b.lease.hold(), inUse);
  }
  await held.release();
});

test('the same cloud goes on at once after a kill; a file that is half written counts as a writer', async () => {
  await writer('a').lease.hold();
  const again = await writer('a').lease.hold();
  await again.assertHeld();
  await again.release();
  writeFileSync(join(location, 'writers', '999999999998'), '{"clo');
  const b = writer('b');
  await assert.rejects(b.lease.hold(), inUse);
  b.clock.advance(SILENCE_MS);
  await (await b.lease.hold()).release();
  assert.deepEqual(readdirSync(join(location, 'writers')), ['999999999999']);
});

test('a target that is gone is reported as that', async () => {
  const held = await writer('a').lease.hold();
  rmSync(location, { recursive: true });
  await assert.rejects(held.assertHeld(), { code: 'target_unavailable' });
});
