/** The start of scheduled drills: with real rows, and a ground that returns what the test sets. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import type { SqliteMetadata } from '../../drivers/metadata-sqlite/sqlite-metadata.ts';
import { Changes } from '../../metadata/change.ts';
import { Alarms } from '../../platform/alarms.ts';
import { FakeClock, readTime, systemClock } from '../../platform/clock.ts';
import { openTestMetadata } from '../../testing/new-metadata.ts';
import type { PointEvents } from '../points/point-view.ts';
import type { KeySlot } from '../repository/key-slot.ts';
import { DAY_MS, HOUR_MS } from '../schedule/schedule.ts';
import { RecoveryStore } from '../store.ts';
import { type DrillFindings, DrillSkipped } from './drill.ts';
import { DrillStore } from './drill-store.ts';
import { Drills } from './drills.ts';

const TARGET = '/mnt/points';
const WEEK_MS = 7 * DAY_MS;
const directory = mkdtempSync(join(tmpdir(), 'cloudlet-drills-'));
let metadata: SqliteMetadata;
before(async () => {
  metadata = await openTestMetadata({ directory, clock: systemClock, alarms: new Alarms(systemClock) });
});
beforeEach(() => metadata.commit([{ sql: 'DELETE FROM recovery_points', params: [] }]));
after(async () => {
  await metadata.close();
  rmSync(directory, { recursive: true });
});

const SOUND: DrillFindings = {
  checks: [{ name: 'counts', state: 'passed', detail: 'all' }],
  verdict: { damage: [], damagedFiles: 0 },
  logs: null,
  cloud: null,
  chainHeads: [],
};

function open(everyMs = WEEK_MS) {
  const clock = new FakeClock(readTime('now', '2026-11-26 12:00:00'));
  const changes = new Changes({ metadata });
  const store = new RecoveryStore(metadata);
  const begun: string[] = [];
  let answer: () => Promise<DrillFindings> = async () => SOUND;
  const drills = new Drills({
    store,
    drillStore: new DrillStore(metadata),
    changes,
    clock,
    everyMs,
    location: TARGET,
    logs: { heads: () => [], note: async () => {} },
    news: { of: async () => [] } as unknown as PointEvents,
    slot: { check: async () => SOUND.checks[0] } as unknown as KeySlot,
    keys: async () => ({ key: Buffer.alloc(32), repositoryId: 'r' }),
    cloud: async () => 'c',
    chainHash: async ({ chain, number }) => `${chain} ${number}`,
    ground: {
      sweep: async () => {},
      run: async ({ pointId }) => {
        begun.push(pointId);
        return answer();
      },
    },
    onError: () => {},
    onEnd: () => {},
  });
  const point = async (id: string) => {
    const facts = { created_at: clock.now(), scheduled_at: null, contents: '{}' };
    await changes.store([
      store.insert({ point_id: id, target: TARGET, ...facts }),
      {
        sql: "UPDATE recovery_points SET state = 'complete', completed_at = created_at, gaps = '[]'",
        params: [],
      },
    ]);
  };
  /** Advances time, and lets the job run to its end. */
  const later = async (ms: number) => {
    clock.advance(ms);
    await drills.tick();
    for (const id of begun) await drills.work.wait(id, 10_000);
  };
  const resultOf = async (id: string) => JSON.parse((await store.find(id))?.drill ?? 'null')?.result;
  const say = (said: typeof answer) => {
    answer = said;
  };
  return { drills, begun, point, later, resultOf, say };
}

test('the newest point is drilled once in a week, whatever came of the last drill', async () => {
  const { begun, point, later, resultOf, say } = open();
  await later(0);
  assert.deepEqual(begun, []);
  await point('drp-1');
  await later(HOUR_MS);
  assert.deepEqual(begun, ['drp-1']);
  assert.equal(await resultOf('drp-1'), 'passed');
  await point('drp-2');
  await later(WEEK_MS - HOUR_MS);
  assert.deepEqual(begun, ['drp-1']);
  say(async () => {
    throw new DrillSkipped('no room');
  });
  await later(HOUR_MS);
  assert.deepEqual(begun, ['drp-1', 'drp-2']);
  assert.equal(await resultOf('drp-2'), 'skipped');
  await later(DAY_MS);
  assert.equal(begun.length, 2, 'it was tried');
  say(async () => {
    throw new Error('it fell over');
  });
  await later(WEEK_MS);
  assert.deepEqual(begun, ['drp-1', 'drp-2', 'drp-2']);
  assert.equal(await resultOf('drp-2'), 'failed');
});

test('none begins while one runs, and none at all when that is switched off', async () => {
  const { drills, begun, point, say, later } = open();
  await point('drp-1');
  const running = Promise.withResolvers<DrillFindings>();
  say(() => running.promise);
  await drills.tick();
  await drills.tick();
  assert.deepEqual(begun, ['drp-1']);
  running.resolve(SOUND);
  await later(0);
  assert.deepEqual(begun, ['drp-1']);
  const off = open(0);
  await off.later(WEEK_MS);
  assert.deepEqual(off.begun, []);
});

test('the chains of a point of this cloud must still be the beginning of the live ones', async () => {
  const { point, later, resultOf, say } = open();
  await point('drp-1');
  const link = { chain: 'audit log', number: 7 } as const;
  const with7 = (hash: string, cloud: string): DrillFindings => {
    return { ...SOUND, cloud, chainHeads: [{ ...link, hash }] };
  };
  for (const [findings, result] of [
    [with7('audit log 7', 'c'), 'passed'],
    [with7('replaced', 'c'), 'failed'],
    [with7('replaced', 'another cloud'), 'passed'],
  ] as const) {
    say(async () => findings);
    await later(WEEK_MS);
    assert.equal(await resultOf('drp-1'), result);
  }
});
