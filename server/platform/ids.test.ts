import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock } from './clock.ts';
import { idTime, isId, newId, newMac, newUuid, randomBase62, randomSecret } from './ids.ts';

test('an id has its prefix and 26 characters of base32, and is one of its kind only', () => {
  const clock = new FakeClock();
  for (let i = 0; i < 2000; i++) {
    const id = newId('obj', clock);
    assert.match(id, /^obj-[0-9a-hjkmnp-tv-z]{26}$/);
    assert.ok(isId('obj', id));
    assert.ok(!isId('ver', id));
  }
});

test('ids sort by time', () => {
  const time = fc.integer({ min: 0, max: 2 ** 47 });
  fc.assert(
    fc.property(time, time, (a, b) => {
      fc.pre(a < b);
      assert.ok(newId('ver', new FakeClock(a)) < newId('ver', new FakeClock(b)));
    }),
  );
});

test('ids of one moment differ, and nothing of one tells of the next', () => {
  const clock = new FakeClock();
  const ids = Array.from({ length: 20_000 }, () => newId('blob', clock));
  assert.equal(new Set(ids).size, ids.length);
  // Every letter occurs at each position of the random part.
  for (let at = -16; at < 0; at++) assert.equal(new Set(ids.map((id) => id.at(at))).size, 32);
});

test('what has not the form of an id is none', () => {
  const good = newId('obj', new FakeClock());
  const bad = [
    '',
    'obj-',
    good.slice(0, -1),
    `${good}0`,
    good.toUpperCase(),
    `${good.slice(0, -1)}u`,
    `${good}\n`,
  ];
  for (const text of [...bad, good.replace('-', '_'), `${good.slice(0, -1)}/`, `../${good.slice(3)}`]) {
    assert.ok(!isId('obj', text), text);
  }
});

test('base62 text has its length and all letters about equally often', () => {
  const text = randomBase62(62_000);
  assert.match(text, /^[0-9A-Za-z]{62000}$/);
  const counts = new Map<string, number>();
  for (const letter of text) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  assert.equal(counts.size, 62);
  // 1,000 expected, deviation 31: 250 is eight of them; a modulo bias would be 25 % on eight letters.
  for (const count of counts.values()) assert.ok(Math.abs(count - 1000) < 250, `${count}`);
  assert.equal(randomBase62(0), '');
});

test('secrets have their length and differ', () => {
  assert.equal(randomSecret(32).length, 32);
  assert.notDeepEqual(randomSecret(32), randomSecret(32));
});

test('an id tells when it was made', () => {
  const time = fc.integer({ min: 0, max: 2 ** 47 });
  fc.assert(fc.property(time, (ms) => assert.equal(idTime(newId('vm', new FakeClock(ms))), ms)));
});

test('hardware addresses and uuids have their form, and differ', () => {
  for (const [make, form] of [
    [newMac, /^52(?::[0-9a-f]{2}){5}$/],
    [newUuid, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/],
  ] as const) {
    const made = Array.from({ length: 100 }, () => make());
    for (const text of made) assert.match(text, form);
    assert.ok(new Set(made).size > 98);
  }
});
