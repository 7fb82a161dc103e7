/** True when `label` has every word of `words`, in any order and case: `shop conn` finds `Connect to shop`. */
export function matches(label: string, words: string): boolean {
  const has = label.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => has.includes(word));
}
