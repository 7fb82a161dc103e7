import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Alarms } from '../platform/alarms.ts';
import { FakeClock } from '../platform/clock.ts';
import type { Readiness } from './engine.ts';
import { watchEngines } from './engines.ts';
import type { DatabaseCount } from './store.ts';

const AWAY = { engine: 'mysql', available: false, version: null, source: 'managed', fix: null } as const;
const installed = { ...AWAY, reason: 'it is being installed', preparing: { percent: 7, step: 'fetching' } };
const missing = { ...AWAY, reason: 'it could not be installed' };

/** The alarm while the engine is away and has databases in these states. */
async function alarmOf(readiness: object, ...states: DatabaseCount['state'][]): Promise<string | undefined> {
  const alarms = new Alarms(new FakeClock());
  await watchEngines({
    engines: { readiness: async () => [readiness as Readiness & { engine: 'mysql' }] },
    alarms,
    counts: () => states.map((state) => ({ engine: 'mysql', state, count: 1 })),
  });
  return alarms.list()[0]?.detail;
}

test('databases that wait for an engine being installed raise no alarm, those that were there do', async () => {
  assert.equal(await alarmOf(installed, 'creating', 'deleting'), undefined);
  assert.match(
    (await alarmOf(installed, 'creating', 'ready')) ?? '',
    /^1 databases of mysql are unavailable/,
  );
});

test('without an installation under way, new databases raise it too', async () => {
  assert.match((await alarmOf(missing, 'creating')) ?? '', /it could not be installed/);
  assert.equal(await alarmOf({ ...missing, available: true }, 'ready'), undefined);
});
