import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PointState } from '../store.ts';
import { type Candidate, keepers } from './retention.ts';
import { DAY_MS, HOUR_MS, type KeepRules, RULES } from './schedule.ts';

const NONE: KeepRules = { last: 0, hourly: 0, daily: 0, weekly: 0, monthly: 0 };
const NOW = Date.UTC(2026, 10, 26, 12);
const LACKS = '[{"component":"database shop","reason":"it was locked"}]';

function point(hoursAgo: number, more: Partial<Candidate> = {}): Candidate {
  const at = NOW - hoursAgo * HOUR_MS;
  const id = `drp-${String(1e6 - hoursAgo * 10).padStart(9, '0')}`;
  return { point_id: id, state: 'complete', gaps: '[]', created_at: at, scheduled_at: at, ...more };
}

const agesOf = (points: readonly Candidate[], rules: Partial<KeepRules>) => {
  const kept = keepers(points, { ...NONE, ...rules }, NOW);
  return points
    .filter(({ point_id: id }) => kept.has(id))
    .map(({ created_at: at }) => (NOW - at) / HOUR_MS)
    .sort((a, b) => a - b);
};

test('a rule keeps the newest of each hour, day, week and month that has one', () => {
  const hourly = Array.from({ length: 24 * 70 }, (_, hours) => point(hours));
  assert.deepEqual(agesOf(hourly, { last: 3 }), [0, 1, 2]);
  assert.deepEqual(agesOf(hourly, { hourly: 4 }), [0, 1, 2, 3]);
  // It is noon: today's newest point is from now, yesterday's is 13 hours old.
  assert.deepEqual(agesOf(hourly, { daily: 3 }), [0, 13, 37]);
  // It is a Thursday: the week before ended on Sunday at 23:00.
  assert.deepEqual(agesOf(hourly, { weekly: 3 }), [0, 85, 253]);
  // October ended 25 days and 12 hours ago.
  assert.deepEqual(agesOf(hourly, { monthly: 2 }), [0, 613]);
  assert.deepEqual(agesOf(hourly, { last: 1, hourly: 2, daily: 2, monthly: 2 }), [0, 1, 13, 613]);
  const sparse = [point(0), point(24 * 100), point(24 * 300)];
  assert.deepEqual(agesOf(sparse, { daily: 3 }), [0, 2400, 7200], 'days without one do not count');
});

test('a partial or damaged one keeps no slot while a complete one is there, and none is let go for it', () => {
  const partial = (hours: number) => point(hours, { gaps: LACKS });
  const damaged = (hours: number) => point(hours, { state: 'damaged' });
  assert.deepEqual(agesOf([partial(1), point(2), damaged(3)], { daily: 1 }), [2]);
  assert.deepEqual(agesOf([damaged(1), partial(2)], { daily: 1 }), [2]);
  // A tenant that locks a table for a week.
  const week = [0, 1, 2, 3, 4, 5, 6].map((day) => partial(day * 24));
  const before = [7, 8, 9].map((day) => point(day * 24));
  assert.deepEqual(agesOf([...week, ...before], { daily: 3 }), [0, 24, 48, 168, 192, 216]);
  assert.deepEqual(agesOf([...week, ...before], { last: 1 }), [0, 168]);
});

test('what the schedule did not make stays, and so does what is under way or of the future', () => {
  const by = (more: Partial<Candidate>) => [
    ...keepers([point(0), point(9, more)], { ...NONE, last: 1 }, NOW),
  ];
  const reasons = (more: Partial<Candidate>) => by(more).find(([id]) => id === point(9).point_id)?.[1];
  assert.deepEqual(reasons({}), undefined);
  assert.deepEqual(reasons({ scheduled_at: null }), ['by_hand']);
  assert.deepEqual(reasons({ state: 'creating' }), ['unfinished']);
  assert.deepEqual(reasons({ state: 'failed' }), ['failed_lately']);
  assert.deepEqual(reasons({ state: 'drilled' }), ['newest_drilled']);
  assert.deepEqual(reasons({ state: 'failed', created_at: NOW - 8 * DAY_MS }), undefined);
  const future = keepers([point(-100), point(1), point(2)], { ...NONE, last: 1 }, NOW);
  assert.deepEqual([...future.values()], [['last', 'newest_complete'], ['future']]);
});

/** A generator of the same numbers for the same seed. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const STATES: readonly PointState[] = [
  ...(['complete', 'complete', 'complete', 'verified', 'drilled', 'damaged'] as const),
  ...(['failed', 'cancelled', 'deleting', 'creating'] as const),
];

function history(random: (below: number) => number): Candidate[] {
  const spanHours = [30, 24 * 10, 24 * 60, 24 * 900][random(4)] as number;
  return Array.from({ length: random(60) }, (_, count) => {
    const at = NOW - random(spanHours * 60) * 60_000 - count + (random(20) === 0 ? 40 * HOUR_MS : 0);
    return {
      point_id: `drp-${String(count).padStart(4, '0')}`,
      state: STATES[random(STATES.length)] as PointState,
      gaps: random(4) === 0 ? LACKS : '[]',
      created_at: at,
      scheduled_at: random(6) === 0 ? null : at,
    };
  });
}

/** The text of a slot, by the calendar, independent of the computation in the product. */
const SLOTS: Readonly<Record<keyof KeepRules, (point: Candidate) => string>> = {
  last: ({ point_id: id }) => id,
  hourly: ({ created_at: at }) => new Date(at).toISOString().slice(0, 13),
  daily: ({ created_at: at }) => new Date(at).toISOString().slice(0, 10),
  weekly: ({ created_at: at }) => {
    const monday = new Date(at);
    monday.setUTCDate(monday.getUTCDate() - ((monday.getUTCDay() + 6) % 7));
    return monday.toISOString().slice(0, 10);
  },
  monthly: ({ created_at: at }) => new Date(at).toISOString().slice(0, 7),
};

const isSound = ({ state }: Candidate) => ['complete', 'verified', 'drilled'].includes(state);
const isWhole = (of: Candidate) => isSound(of) && of.gaps === '[]';

/** Throws when a point is missing that must be kept, or is kept without a reason. */
function assertKept(points: readonly Candidate[], rules: KeepRules): void {
  const kept = keepers(points, rules, NOW);
  const past = points.filter(({ created_at: at }) => at <= NOW);
  const newest = (list: readonly Candidate[]) => Math.max(...list.map(({ created_at: at }) => at));
  const has = (list: readonly Candidate[]) =>
    list.some((one) => kept.has(one.point_id) && one.created_at === newest(list));
  const whole = past.filter(isWhole);
  for (const some of [whole, past.filter(({ state }) => state === 'drilled')]) {
    assert.ok(some.length === 0 || has(some), 'the newest complete and the newest drilled one stay');
  }
  for (const one of points) {
    const mustStay = one.scheduled_at === null || ['creating', 'deleting'].includes(one.state);
    if (mustStay || one.created_at > NOW) assert.ok(kept.has(one.point_id), one.state);
  }
  for (const rule of RULES) {
    const slots = Map.groupBy(whole, SLOTS[rule]);
    const promised = [...slots.keys()].sort(
      (a, b) => newest(slots.get(b) ?? []) - newest(slots.get(a) ?? []),
    );
    for (const slot of promised.slice(0, rules[rule])) {
      assert.ok(has(slots.get(slot) ?? []), `${rule} ${slot} has its newest complete point`);
    }
    const anything = Map.groupBy(
      past.filter((one) => isSound(one) || one.state === 'damaged'),
      SLOTS[rule],
    );
    for (const [, list] of anything) {
      const weak = list.filter((one) => !isWhole(one) && kept.get(one.point_id)?.includes(rule));
      assert.ok(
        weak.length === 0 || !list.some(isWhole),
        `a weak point keeps no ${rule} slot of a complete one`,
      );
      assert.ok(weak.length <= 1);
    }
    const stays = points.filter(({ point_id: id }) => kept.get(id)?.includes(rule));
    assert.ok(stays.length <= 2 * rules[rule], `${rule} keeps ${stays.length}`);
  }
}

test('10,000 random histories: the rules keep what they promise, and bound what stays', () => {
  let removed = 0;
  for (let seed = 1; seed <= 10_000; seed++) {
    const random = randomFrom(seed);
    const points = history(random);
    const few = () => (random(3) === 0 ? 0 : random(9));
    const rules = { last: few(), hourly: few(), daily: few(), weekly: few(), monthly: few() };
    try {
      assertKept(points, rules);
    } catch (error) {
      throw new Error(`seed ${seed}, ${JSON.stringify(rules)}`, { cause: error });
    }
    removed += points.length - keepers(points, rules, NOW).size;
  }
  assert.ok(removed > 50_000, `only ${removed} points were removed`);
});
