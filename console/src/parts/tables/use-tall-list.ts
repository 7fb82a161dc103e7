/** Virtualizes any number of rows with equal height: which are near the viewport, and where. */
import { type RefObject, useLayoutEffect, useState } from 'react';
import { flushSync } from 'react-dom';
import { elementPx, TallPosition } from './tall-list.ts';

/** Rows kept above and below the window. */
const AROUND = 12;
/** Windows that a wheel or a key may move at once; one px of the scroll bar is more in a tall list. */
const SHORT_WINDOWS = 3;
/** Time without scrolling until the window counts as resting. */
const REST_MS = 150;

interface TallListOptions {
  readonly count: number;
  readonly rowPx: number;
}

interface TallList {
  /** Height of the element. */
  readonly heightPx: number;
  /** Indices of the rows to draw. */
  readonly shown: readonly number[];
  /** px from the top of the element to a row. */
  readonly topOf: (index: number) => number;
}

/** `element` contains only the rows, and the window scrolls. */
export function useTallList(element: RefObject<HTMLElement | null>, options: TallListOptions): TallList {
  const { count, rowPx } = options;
  const listPx = count * rowPx;
  const [position] = useState(() => new TallPosition());
  const [near, setNear] = useState({ first: 0, end: 0, shift: 0 });
  useLayoutEffect(() => {
    const frame = element.current;
    if (frame === null) return;
    let resting: ReturnType<typeof setTimeout> | undefined;
    const px = () => Math.round(-frame.getBoundingClientRect().top);
    const show = () => {
      const { at, shift } = position;
      const first = Math.floor(at / rowPx) - AROUND;
      const end = Math.ceil((at + window.innerHeight) / rowPx) + AROUND;
      const isSame = (now: typeof near) => now.first === first && now.end === end && now.shift === shift;
      setNear((now) => (isSame(now) ? now : { first, end, shift }));
    };
    const scrolled = () => position.scrolled(px(), { listPx, shortPx: SHORT_WINDOWS * window.innerHeight });
    const rest = () => {
      // Content above the list may have changed its height, which is not scrolling.
      scrolled();
      const way = position.restPx - px();
      if (way === 0) return;
      window.scrollBy({ top: way, behavior: 'instant' });
      position.put(px());
      show();
    };
    const look = () => {
      scrolled();
      clearTimeout(resting);
      resting = setTimeout(() => flushSync(rest), REST_MS);
      show();
    };
    // Synchronously, because the viewport would be empty for a moment otherwise.
    const lookAtOnce = () => flushSync(look);
    look();
    // A list that has grown has new space below.
    rest();
    window.addEventListener('scroll', lookAtOnce, { passive: true });
    window.addEventListener('resize', lookAtOnce);
    return () => {
      clearTimeout(resting);
      window.removeEventListener('scroll', lookAtOnce);
      window.removeEventListener('resize', lookAtOnce);
    };
  }, [element, position, rowPx, listPx]);
  const first = Math.max(0, near.first);
  const shown = Array.from({ length: Math.max(0, Math.min(count, near.end) - first) }, (_, i) => first + i);
  return { heightPx: elementPx(listPx), shown, topOf: (index) => index * rowPx + near.shift };
}
