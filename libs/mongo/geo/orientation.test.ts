import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { sideOf } from './orientation.ts';
import { angleBetween, angleToArc, Ring, TOUCH, type Vector, vectorOf } from './sphere.ts';

const RUNS = process.env.FAULTS === 'full' ? 20_000 : 1000;

/** Whole numbers, many of them close together; 2⁵¹ of them are one. */
const whole = fc.oneof(
  fc.integer({ min: -2, max: 2 }),
  fc.bigInt({ min: -(2n ** 50n), max: 2n ** 50n }).map(Number),
  fc.integer({ min: -2, max: 2 }).map((small) => 2 ** 50 + small),
);
const corner = fc.tuple(whole, whole, whole);

test('the side of a great circle is that of the determinant, however near to it a point is', () => {
  const sum = (a: readonly number[], b: readonly number[], times: number) =>
    a.map((each, i) => Math.trunc(each / 8) + times * Math.trunc((b[i] as number) / 8));
  // The third is often on the plane of the others, or next to it by the smallest step.
  const triple = fc
    .tuple(corner, corner, corner, fc.constantFrom(0, 1, 2, 3), fc.tuple(fc.nat(1), fc.nat(1), fc.nat(1)))
    .map(([a, b, c, times, off]) => {
      const near = sum(a, b, times).map((each, i) => each + (off[i] as number));
      return [a, b, times === 0 ? c : near] as const;
    });
  fc.assert(
    fc.property(triple, (triple) => {
      const [a, b, c] = triple.map((list) => list.map(BigInt)) as [bigint[], bigint[], bigint[]];
      const [[ax, ay, az], [bx, by, bz], [cx, cy, cz]] = [a, b, c] as [bigint[], bigint[], bigint[]];
      const exact =
        ((ay as bigint) * (bz as bigint) - (az as bigint) * (by as bigint)) * (cx as bigint) +
        ((az as bigint) * (bx as bigint) - (ax as bigint) * (bz as bigint)) * (cy as bigint) +
        ((ax as bigint) * (by as bigint) - (ay as bigint) * (bx as bigint)) * (cz as bigint);
      const vectors = triple.map((list) => list.map((each) => each / 2 ** 51) as unknown as Vector);
      const side = sideOf(...(vectors as [Vector, Vector, Vector]));
      assert.equal(Math.sign(side), exact > 0n ? 1 : exact < 0n ? -1 : 0);
    }),
    { numRuns: RUNS },
  );
});

const degrees = fc.oneof(
  fc.constantFrom(0, 1, -1, 90, -90, 45, 5e-324, -1e-268, 1e-9, -3e-14),
  fc.double({ min: -90, max: 90, noNaN: true }),
  fc.double({ min: -1e-7, max: 1e-7, noNaN: true }),
);
const place = fc.tuple(degrees, degrees).map(([lng, lat]) => vectorOf(lng, lat));

test('a triangle encloses what is left of its sides, however thin it is, and its reverse all else', () => {
  fc.assert(
    fc.property(fc.tuple(place, place, place), place, ([a, b, c], p) => {
      const sides = [[a, b, c] as const, [b, c, a] as const, [c, a, b] as const];
      fc.pre(sides.every(([from, to]) => angleBetween(from, to) < Math.PI - 1e-9));
      fc.pre(sides.every(([from, to, other]) => angleToArc(other, from, to) > TOUCH));
      fc.pre(sides.every(([from, to]) => angleToArc(p, from, to) > TOUCH));
      const turn = Math.sign(sideOf(a, b, c));
      const isInside = sides.every(([from, to]) => Math.sign(sideOf(from, to, p)) === turn);
      assert.equal(new Ring([a, b, c]).encloses(p), isInside);
      const [one, other] = [new Ring([a, b, c], true), new Ring([c, b, a], true)];
      assert.equal(one.encloses(p), turn > 0 ? isInside : !isInside);
      assert.equal(other.encloses(p), !one.encloses(p));
    }),
    { numRuns: RUNS },
  );
});
