/** Widths of columns whose cells are one line. */

const CHARACTER_PX = 8;
const LEAST_PX = 90;
const MOST_PX = 320;
const PADDING_PX = 28;

/** px for the longest of these texts, by their numbers of characters. */
export function columnPx(lengths: readonly number[]): number {
  const most = Math.max(0, ...lengths);
  return Math.min(MOST_PX, Math.max(LEAST_PX, Math.ceil(most * CHARACTER_PX) + PADDING_PX));
}
