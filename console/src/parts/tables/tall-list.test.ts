import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { elementPx, TallPosition } from './tall-list.ts';

const ROW_PX = 44;
const WINDOW_PX = 900;
const MILLION_PX = 1_000_000 * ROW_PX;

/** A viewport over a list, like a browser. */
class Page {
  readonly position = new TallPosition();
  readonly listPx: number;
  px = 0;

  constructor(listPx: number) {
    this.listPx = listPx;
  }

  get mostPx(): number {
    return Math.max(0, elementPx(this.listPx) - WINDOW_PX);
  }

  to(px: number): number {
    this.px = Math.max(0, Math.min(this.mostPx, px));
    this.position.scrolled(this.px, { listPx: this.listPx, shortPx: 3 * WINDOW_PX });
    return this.position.at;
  }

  rest(): void {
    this.px = this.position.restPx;
    this.position.put(this.px);
  }
}

const heights = fc.integer({ min: 0, max: 1e9 });
/** Fractions of the range of the scroll bar. */
const share = fc.double({ min: 0, max: 1, noNaN: true });

test('what browsers can draw is not changed', () => {
  const page = new Page(15_000_000);
  assert.equal(elementPx(page.listPx), page.listPx);
  for (const px of [0, 7_000_000, 7_000_100, page.mostPx]) {
    assert.deepEqual([page.to(px), page.position.shift, page.position.restPx], [px, 0, px]);
  }
});

test('the End key leads to the last row of a million, and the Home key back to the first', () => {
  const page = new Page(MILLION_PX);
  assert.ok(elementPx(page.listPx) < 17_895_697, 'Firefox draws it');
  assert.equal(page.to(page.mostPx), MILLION_PX - WINDOW_PX);
  page.rest();
  assert.equal(page.px, page.mostPx);
  assert.equal(page.to(0), 0);
});

test('an End key that is animated, slowly at last, leads there too', () => {
  const page = new Page(MILLION_PX);
  for (let left = page.mostPx; left > 0.5; left *= 0.7) page.to(page.mostPx - Math.round(left));
  assert.equal(page.to(page.mostPx), MILLION_PX - WINDOW_PX);
});

test('the whole list is at the scroll bar, in its order', () => {
  fc.assert(
    fc.property(heights, share, share, (listPx, one, other) => {
      const ats = [one, other]
        .toSorted((a, b) => a - b)
        .map((part) => {
          const page = new Page(listPx);
          return page.to(Math.round(part * page.mostPx));
        });
      const [before = 0, after = 0] = ats;
      assert.ok(0 <= before && before <= after && after <= Math.max(0, listPx - WINDOW_PX), String(ats));
    }),
  );
});

test('a wheel moves by as much anywhere, and reaches both ends when the window rests now and then', () => {
  fc.assert(
    fc.property(heights, share, fc.constantFrom(-100_000, 100_000), (listPx, start, way) => {
      const page = new Page(listPx);
      page.to(Math.round(start * page.mostPx));
      const last = way > 0 ? Math.max(0, listPx - WINDOW_PX) : 0;
      const step = Math.sign(way) * 2000;
      for (let i = 0; i < 20 && page.position.at !== last; i++) {
        const { at } = page.position;
        const wanted = Math.max(0, Math.min(listPx - WINDOW_PX, at + step));
        assert.equal(page.to(page.px + step), Math.max(0, wanted));
        page.rest();
        assert.equal(page.position.at, Math.max(0, wanted), 'resting moves no row');
      }
    }),
  );
});

test('what is drawn stays where it is when the list grows', () => {
  const position = new TallPosition();
  const [short, tall] = [14_900_000, 15_100_000].map((listPx) => ({ listPx, shortPx: 2700 }));
  if (short === undefined || tall === undefined) return;
  position.scrolled(14_899_000, short);
  position.scrolled(14_899_100, tall);
  assert.equal(position.at, 14_899_100);
});
