import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '../clock.ts';
import { Alarms } from './alarms.ts';
import { Status } from './status.ts';

const METRICS = { cpu: 12.5, memory: 40, disk: null };

const ENGINE = { engine: 'qemu', version: '7.2', accel: 'tcg', accelReason: 'no KVM', problem: '', fix: '' };

function open(isUsable = true) {
  const clock = new FakeClock();
  clock.advance(90_000);
  const alarms = new Alarms(clock);
  const scrub = async () => ({ running: false });
  const compute = async () => ({ ...ENGINE, isUsable });
  const status = new Status({ clock, alarms, version: '1.2.3', metrics: () => METRICS, scrub, compute });
  return { clock, alarms, status };
}

test('without alarms all is well, and the time since the start is told', async () => {
  const { clock, status } = open();
  clock.advance(61_400);
  clock.jump(-3_600_000);
  assert.deepEqual(await status.read(), {
    status: 'ok',
    version: '1.2.3',
    uptime_seconds: 61,
    metrics: METRICS,
    components: {
      metadata: { status: 'ok' },
      storage: { status: 'ok', scrub: { running: false } },
      billing: { status: 'ok' },
      compute: {
        status: 'ok',
        engine: 'qemu',
        version: '7.2',
        accel: 'tcg',
        accel_reason: 'no KVM',
        problem: null,
        fix: null,
      },
    },
    alarms: [],
  });
  assert.equal(status.isReady(), true);
});

test('without an engine for machines all else is well', async () => {
  const { status, components } = await open(false).status.read();
  assert.deepEqual([status, components.compute.status], ['ok', 'unavailable']);
});

test('an alarm shows on its component, and on readiness only when nothing can be stored', async () => {
  const cases = [
    { code: 'metadata_write_failed', metadata: 'degraded', storage: 'ok', ready: false },
    { code: 'blob_fsync_failed', metadata: 'ok', storage: 'degraded', ready: false },
    { code: 'damaged_objects', metadata: 'ok', storage: 'degraded', ready: true },
    { code: 'blob_thread_died', metadata: 'ok', storage: 'degraded', ready: true },
    { code: 'something_else', metadata: 'ok', storage: 'ok', ready: true },
  ];
  for (const { code, metadata, storage, ready } of cases) {
    const { alarms, status } = open();
    alarms.raise(code, 'what happened');
    const { status: state, components, alarms: shown } = await status.read();
    assert.deepEqual(
      [state, components.metadata.status, components.storage.status],
      ['degraded', metadata, storage],
    );
    assert.deepEqual(shown, [{ code, detail: 'what happened', since: '2026-01-01 00:01:30' }]);
    assert.equal(status.isReady(), ready, code);
    alarms.clear(code);
    assert.equal((await status.read()).status, 'ok');
    assert.equal(status.isReady(), true);
  }
});

test('an alarm that is raised again keeps its first moment and takes the new text', () => {
  const { clock, alarms } = open();
  alarms.raise('damaged_objects', 'one');
  clock.advance(5000);
  alarms.raise('damaged_objects', 'two');
  assert.deepEqual(alarms.list(), [{ code: 'damaged_objects', detail: 'two', since: '2026-01-01 00:01:30' }]);
});
