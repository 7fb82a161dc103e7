/** Many ports in few bytes: `25432-25440,25500`. */
export function rangesOf(ports: Iterable<number>): string {
  const ranges: [number, number][] = [];
  for (const port of [...ports].sort((a, b) => a - b)) {
    const last = ranges.at(-1);
    if (last !== undefined && port <= last[1] + 1) last[1] = port;
    else ranges.push([port, port]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

/** Omits texts that are not ports. */
export function portsIn(ranges: string): number[] {
  return ranges.split(',').flatMap((range) => {
    const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(range) ?? [];
    if (first === undefined || Number(last) > 65_535) return [];
    return Array.from({ length: Math.max(0, Number(last) - Number(first) + 1) }, (_, i) => Number(first) + i);
  });
}
