/** True when `label` has every word of `words`, in any order and case: `shop que` finds `Query shop`. */
export function matches(label: string, words: string): boolean {
  const has = label.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => has.includes(word));
}
