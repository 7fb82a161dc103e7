/** A restore of many and of large objects: its memory stays constant, and another account can continue. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { CheckedClient } from '../harness/checked-client.ts';
import { LosableCloud } from './recovery-kit.ts';

const MIB = 2 ** 20;
const LARGE_MIB = 256;
const SMALL = 1200;
/** The data in transit at a time, several times over; less than the large object. */
const MOST_MIB = 128;

const peakMib = (pid: number) =>
  Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

/** Uploads and reads until `work` ends; resolves with the median time of both, ms. */
async function beside(victim: CheckedClient, work: Promise<unknown>): Promise<number> {
  let isOver = false;
  const over = work.finally(() => {
    isOver = true;
  });
  const times: number[] = [];
  for (let i = 0; !isOver || i < 20; i++) {
    const at = performance.now();
    const { status, body } = await victim.upload('beside', `f-${i % 10}`, `text ${i}`);
    assert.equal(status, 200);
    assert.equal(String(await victim.download(body.object_id)), `text ${i}`);
    times.push(performance.now() - at);
  }
  await over;
  return times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)] ?? 0;
}

test('memory stays flat, and another account goes on', async (t) => {
  const lost = await LosableCloud.start();
  t.after(() => lost.end());
  const { user } = lost;
  await user.expect(201, '/api/buckets', { json: { name: 'files' } });
  for (let i = 0; i < SMALL; i += 50) {
    const uploads = Array.from({ length: 50 }, (_, at) => {
      return user.upload('files', `small/${i + at}`, randomBytes(at % 2 === 0 ? 200 : 30_000));
    });
    await Promise.all(uploads);
  }
  await user.upload('files', 'large', randomBytes(LARGE_MIB * MIB));
  const { point_id } = await lost.point();
  const victim = user.as((await user.register()).api_key);
  await victim.expect(201, '/api/buckets', { json: { name: 'beside' } });
  await lost.startAgain();
  const [owner, other] = [lost.user, victim].map(({ key }) => lost.admin.as(key)) as [
    CheckedClient,
    CheckedClient,
  ];
  const restore = (json: object) =>
    owner.expect(200, '/api/buckets/files/restore', { json: { point_id, ...json } });
  const alone = await beside(other, Promise.resolve());
  assert.equal((await restore({ name: 'small/1', to_bucket: 'one' })).objects, 1);
  const [before, began] = [peakMib(lost.cloud.pid), performance.now()];
  const busy = await beside(other, restore({ to_bucket: 'all' }));
  const seconds = (performance.now() - began) / 1000;
  const grown = peakMib(lost.cloud.pid) - before;
  const { object_count } = await owner.expect(200, '/api/buckets/all');
  assert.equal(object_count, SMALL + 1);
  const times = `upload and download beside it: ${alone.toFixed(1)} ms alone, ${busy.toFixed(1)} ms`;
  t.diagnostic(`${SMALL + 1} objects in ${seconds.toFixed(1)} s; ${times}; ${grown.toFixed(0)} MiB more`);
  assert.ok(grown < MOST_MIB, `${grown} MiB more`);
});
