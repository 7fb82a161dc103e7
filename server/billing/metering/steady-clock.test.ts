import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from '../../platform/clock.ts';
import { type Anchor, RESTORED, SteadyClock } from './steady-clock.ts';

const DAY = 24 * 3_600_000;

test('it goes with the wall clock when that goes right', () => {
  const clock = new FakeClock();
  const steady = new SteadyClock({ clock, bootId: 'a', anchor: null });
  assert.equal(steady.now(), clock.now());
  clock.advance(90_000);
  assert.equal(steady.now(), clock.now());
  assert.equal(steady.at(clock.now() - 30_000), clock.now() - 30_000);
  assert.equal(steady.at(clock.now() + 30_000), clock.now(), 'nothing is later than now');
});

test('whatever the wall clock does, it never runs faster than the host, and never back', () => {
  const step = fc.record({
    advance: fc.integer({ min: 0, max: 120_000 }),
    jump: fc.oneof(
      fc.constant(0),
      fc.integer({ min: -1000, max: 1000 }),
      fc.constantFrom(-30 * DAY, 30 * DAY, -3_600_000, 3_600_000),
    ),
    reanchor: fc.boolean(),
    restart: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
      const clock = new FakeClock();
      let steady = new SteadyClock({ clock, bootId: 'a', anchor: null });
      const [began, beganUp] = [steady.now(), clock.uptime()];
      let last = steady.reanchor();
      let before = began;
      for (const { advance, jump, reanchor, restart } of steps) {
        clock.advance(advance);
        clock.jump(jump);
        assert.ok(steady.now() - began <= clock.uptime() - beganUp);
        if (reanchor) last = steady.reanchor();
        if (restart) {
          steady = new SteadyClock({ clock, bootId: 'a', anchor: last });
          before = last.steadyMs;
        }
        if (jump >= 0) assert.ok(steady.now() >= before);
        before = steady.now();
      }
    }),
  );
});

test('a jump of 30 days costs nothing, and time goes on after it', () => {
  for (const jump of [30 * DAY, -30 * DAY]) {
    const clock = new FakeClock();
    const steady = new SteadyClock({ clock, bootId: 'a', anchor: null });
    const began = steady.now();
    clock.advance(60_000);
    steady.reanchor();
    clock.jump(jump);
    clock.advance(30_000);
    steady.reanchor();
    clock.advance(60_000);
    assert.equal(steady.now() - began, jump > 0 ? 150_000 : 120_000);
  }
});

test('after a restart in the same boot the time between counts by both clocks', () => {
  const clock = new FakeClock();
  const anchor = new SteadyClock({ clock, bootId: 'a', anchor: null }).reanchor();
  clock.advance(3 * DAY);
  assert.equal(new SteadyClock({ clock, bootId: 'a', anchor }).now() - anchor.steadyMs, 3 * DAY);
  clock.jump(30 * DAY);
  const steady = new SteadyClock({ clock, bootId: 'a', anchor });
  assert.equal(steady.now() - anchor.steadyMs, 3 * DAY);
  assert.equal(steady.uncountedMs, 30 * DAY);
});

test('a moment before a time that is not counted is where it was', () => {
  const ends = [
    { off: 0, jump: 30 * DAY, bootId: 'a' },
    { off: 0, jump: -30 * DAY, bootId: 'a' },
    { off: 0, jump: 0, bootId: 'a' },
    { off: 3 * DAY, jump: 0, bootId: 'b' },
    { off: 3_600_000, jump: 0, bootId: 'b' },
  ];
  for (const { off, jump, bootId } of ends) {
    const clock = new FakeClock();
    const anchor = new SteadyClock({ clock, bootId: 'a', anchor: null }).reanchor();
    clock.advance(20_000);
    const end = clock.now();
    clock.advance(off);
    clock.jump(jump);
    clock.advance(5000);
    const steady = new SteadyClock({ clock, bootId, anchor });
    assert.equal(
      steady.at(end),
      Math.min(anchor.steadyMs + 20_000, steady.now()),
      JSON.stringify({ off, jump }),
    );
    clock.advance(60_000);
    assert.equal(steady.at(clock.now() - 1000), steady.now() - 1000);
  }
});

test('after a boot the wall clock counts, but not for longer than two hours', () => {
  const clock = new FakeClock();
  const anchor = new SteadyClock({ clock, bootId: 'a', anchor: null }).reanchor();
  for (const [off, counted] of [
    [600_000, 600_000],
    [2 * 3_600_000, 2 * 3_600_000],
    [3 * 3_600_000, 0],
    [-600_000, 0],
  ] as const) {
    const later = new FakeClock(clock.now() + off);
    const steady = new SteadyClock({ clock: later, bootId: 'b', anchor });
    assert.equal(steady.now() - anchor.steadyMs, counted);
    assert.equal(steady.uncountedMs, Math.max(0, off - counted));
  }
});

test('between a recovery point and the first start after its restore nothing counts', () => {
  for (const gap of [600_000, 3 * DAY]) {
    const clock = new FakeClock();
    const anchor = new SteadyClock({ clock, bootId: 'a', anchor: null }).reanchor();
    const began = clock.now() - 20_000;
    clock.advance(gap);
    const steady = new SteadyClock({ clock, bootId: 'a', anchor: { ...anchor, bootId: RESTORED } });
    assert.equal(steady.now(), anchor.steadyMs);
    assert.equal(steady.at(began), anchor.steadyMs - 20_000, 'what began before the point began then');
    clock.advance(60_000);
    assert.equal(steady.now(), anchor.steadyMs + 60_000);
  }
});

test('nodes that follow one anchor agree, whatever the clock they share and their own do', () => {
  // The clock of the database, and a monotonic one per host.
  const shared = new FakeClock();
  const hostOf = (upMs: number) => ({ now: () => shared.now(), uptime: () => shared.monotonic() + upMs });
  const nodeOf = (bootId: string, upMs: number, anchor: Anchor | null) =>
    new SteadyClock({ clock: { ...hostOf(upMs), monotonic: () => 0 }, bootId, anchor });
  const holder = nodeOf('one', 5_000_000, null);
  const first = holder.reanchor();
  shared.advance(30_000);
  const other = nodeOf('two', 7, first);
  assert.equal(other.now(), holder.now());
  shared.advance(30_000);
  other.follow(holder.reanchor());
  assert.equal(other.now(), holder.now());
  const before = holder.now();
  shared.jump(3_600_000);
  shared.advance(60_000);
  assert.equal(other.now(), before + 60_000, 'the jump is not charged');
  other.follow(holder.reanchor());
  assert.equal(holder.now(), before + 60_000);
  assert.equal(other.now(), holder.now());
  const late = nodeOf('three', 99, holder.reanchor());
  shared.advance(1000);
  assert.equal(late.now(), holder.now());
  other.follow({ ...holder.reanchor(), wallMs: shared.now() - 3_600_000 });
  assert.equal(other.now(), holder.now(), 'an old anchor changes nothing');
});
