/**
 * Lists that are taller than browsers can draw: Chromium truncates an element at 33,554,428 px,
 * Firefox at 17,895,697 px, without a warning. The element of such a list has MOST_PX. Short
 * scrolls move the list by as many px; a long one, with the scroll bar or the End key, leads to the
 * same fraction of it.
 */

/**
 * Maximum px of an element; whole px up to here are exact in the single precision that browsers draw with.
 */
const MOST_PX = 15_000_000;
/** The parts at the beginning and end of the element where one of its px is one px of the list. */
const END_PX = 1_000_000;

/** px of the element that contains a list of `listPx`. */
export function elementPx(listPx: number): number {
  return Math.min(listPx, MOST_PX);
}

/** Maps a position in a length of `from` px to one of `to` px. */
function mapped(position: number, from: number, to: number): number {
  if (from === to || position <= END_PX) return position;
  if (position >= from - END_PX) return to - (from - position);
  return Math.round(END_PX + ((position - END_PX) * (to - 2 * END_PX)) / (from - 2 * END_PX));
}

/** The position in a tall list at the upper edge of the window. */
export class TallPosition {
  #listPx = 0;
  /** At the upper edge: px of the element, and of the list. */
  #px = 0;
  #at = 0;

  /** px of the list. */
  get at(): number {
    return this.#at;
  }

  /** Offset in px of the rows in the element, relative to the list. */
  get shift(): number {
    return this.#px - this.#at;
  }

  /**
   * The window was scrolled to `px` of the element; distances of up to `shortPx` move the list by as much.
   */
  scrolled(px: number, { listPx, shortPx }: { listPx: number; shortPx: number }): void {
    const way = px - this.#px;
    const isShort = Math.abs(way) <= shortPx;
    this.#at = isShort && listPx > MOST_PX ? this.#at + way : mapped(px, elementPx(listPx), listPx);
    this.#px = px;
    this.#listPx = listPx;
  }

  /** px of the element at which the window belongs when at rest, so that scrolling can always continue. */
  get restPx(): number {
    return mapped(this.#at, this.#listPx, elementPx(this.#listPx));
  }

  /** The viewport was moved there without changing the rendered rows. */
  put(px: number): void {
    this.#px = px;
  }
}
