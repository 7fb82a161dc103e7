import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { FakeClock, systemClock } from '../platform/clock.ts';
import { readHostMemory } from '../platform/host/host-facts.ts';
import { HostMetrics, parseCpuTicks } from './host-metrics.ts';

async function started(clock = systemClock): Promise<HostMetrics> {
  const metrics = new HostMetrics({ clock, dataDir: tmpdir() });
  await metrics.start();
  return metrics;
}

/** The same share as in `top`, read in another way: the per-core lines instead of the sum. */
function coreTicks(): { busy: number; total: number } {
  const lines = readFileSync('/proc/stat', 'utf8').split('\n');
  const cores = lines
    .filter((line) => /^cpu\d/.test(line))
    .map((line) => line.split(/\s+/).slice(1, 9).map(Number));
  const total = cores.flat().reduce((sum, ticks) => sum + ticks, 0);
  const idle = cores.reduce((sum, ticks) => sum + (ticks[3] ?? 0) + (ticks[4] ?? 0), 0);
  return { busy: total - idle, total };
}

const onLinux = process.platform === 'linux' ? {} : { skip: 'compares with /proc' };

describe('host metrics', () => {
  test(
    'cpu is the share that /proc/stat shows for the same time, and burning a core moves it',
    onLinux,
    async () => {
      const metrics = await started();
      const before = coreTicks();
      const burner = new Worker('for (;;);', { eval: true });
      await sleep(1500);
      const after = coreTicks();
      const { cpu } = metrics.read();
      await burner.terminate();
      metrics.stop();
      const cores = readFileSync('/proc/stat', 'utf8').match(/^cpu\d/gm)?.length ?? 1;
      const expected = ((after.busy - before.busy) / (after.total - before.total)) * 100;
      assert.ok(Math.abs(cpu - expected) < 8, `${cpu} is not ${expected}`);
      // Other programs may share the core with the burner, but they only make it busier.
      assert.ok(cpu > (100 / cores) * 0.7, `${cpu} does not show a busy core of ${cores}`);
    },
  );

  test('iowait is idle, stolen time busy, guests are not counted twice', () => {
    const stat = 'cpu  10 20 30 400 500 6 7 8 5 4\ncpu0 1 2 3 4 5 6 7 8 9 10\n';
    assert.deepEqual(parseCpuTicks(stat), { busy: 81, total: 981 });
  });

  test('memory is what is not available', onLinux, async () => {
    const metrics = await started();
    const { memory } = metrics.read();
    metrics.stop();
    const { totalBytes, availableBytes } = readHostMemory();
    const expected = (1 - availableBytes / totalBytes) * 100;
    assert.ok(Math.abs(memory - expected) < 3, `${memory} is not ${expected}`);
  });

  test('disk is what df says of the data directory', async () => {
    const metrics = await started();
    const { disk } = metrics.read();
    metrics.stop();
    const shown = execFileSync('df', ['-P', tmpdir()], { encoding: 'utf8' }).split('\n')[1] ?? '';
    const expected = Number(/(\d+)%/.exec(shown)?.[1]);
    // df rounds up to whole percents.
    assert.ok(
      disk !== null && expected - disk >= -0.2 && expected - disk <= 1.2,
      `${disk} is not ${expected}`,
    );
  });

  test('figures have one decimal and lie within 0 and 100', async () => {
    const metrics = await started();
    await sleep(30);
    for (const figure of Object.values(metrics.read())) {
      assert.ok(figure >= 0 && figure <= 100 && Math.round(figure * 10) / 10 === figure, String(figure));
    }
    metrics.stop();
  });

  test('a disk that cannot be asked, or has not answered for a minute, has no figure', async () => {
    const missing = new HostMetrics({ clock: systemClock, dataDir: '/nonexistent/directory' });
    await missing.start();
    assert.equal(missing.read().disk, null);
    missing.stop();
    const clock = new FakeClock();
    const metrics = await started(clock);
    assert.notEqual(metrics.read().disk, null);
    clock.advance(61_000);
    assert.equal(metrics.read().disk, null);
    metrics.stop();
  });

  test('it forgets what is older than the window', onLinux, async () => {
    const clock = new FakeClock();
    const metrics = await started(clock);
    const burner = new Worker('for (;;);', { eval: true });
    await sleep(1200);
    await burner.terminate();
    clock.advance(60_000); // the burning, and the sample before it, leave the window at the next tick
    await sleep(2200);
    const before = coreTicks();
    await sleep(1000);
    const after = coreTicks();
    const { cpu } = metrics.read();
    metrics.stop();
    const now = ((after.busy - before.busy) / (after.total - before.total)) * 100;
    assert.ok(Math.abs(cpu - now) < 30, `${cpu} still remembers; the machine is at ${now}`);
  });
});
