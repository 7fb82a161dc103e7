/** The difference of two texts, line by line (Myers 1986): unchanged, removed, or added. */

export interface DiffPart {
  readonly kind: 'same' | 'gone' | 'new';
  readonly lines: readonly string[];
}

/** Lines that may have changed: the time grows with their square. */
const MOST_CHANGES = 600;

/** undefined: they differ too much. */
export function diffOf(before: string, after: string): DiffPart[] | undefined {
  const [a, b] = [before.split('\n'), after.split('\n')];
  const start = commonLength(a, b, (at) => at);
  const end = Math.min(
    commonLength(a, b, (at, lines) => lines.length - 1 - at),
    Math.min(a.length, b.length) - start,
  );
  const middle = changesOf(a.slice(start, a.length - end), b.slice(start, b.length - end));
  if (middle === undefined) return undefined;
  const edge = (lines: readonly string[]): DiffPart[] =>
    lines.length === 0 ? [] : [{ kind: 'same', lines }];
  return [...edge(a.slice(0, start)), ...middle, ...edge(a.slice(a.length - end))];
}

function commonLength(
  a: readonly string[],
  b: readonly string[],
  place: (at: number, lines: readonly string[]) => number,
): number {
  const most = Math.min(a.length, b.length);
  let length = 0;
  while (length < most && a[place(length, a)] === b[place(length, b)]) length++;
  return length;
}

function changesOf(a: readonly string[], b: readonly string[]): DiffPart[] | undefined {
  const trace: Map<number, number>[] = [];
  let reach = new Map<number, number>([[1, 0]]);
  for (let changes = 0; changes <= Math.min(MOST_CHANGES, a.length + b.length); changes++) {
    trace.push(reach);
    reach = new Map(reach);
    for (let k = -changes; k <= changes; k += 2) {
      let x = isDown(reach, k, changes) ? (reach.get(k + 1) ?? 0) : (reach.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x++;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return partsOf(a, b, trace);
    }
  }
  return undefined;
}

/** Whether an added line reaches diagonal `k` further. */
function isDown(reach: ReadonlyMap<number, number>, k: number, changes: number): boolean {
  return k === -changes || (k !== changes && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
}

/** The path back from the end of both. */
function partsOf(
  a: readonly string[],
  b: readonly string[],
  trace: readonly ReadonlyMap<number, number>[],
): DiffPart[] {
  const lines: { kind: DiffPart['kind']; line: string }[] = [];
  let [x, y] = [a.length, b.length];
  for (let changes = trace.length - 1; changes >= 0; changes--) {
    const reach = trace[changes] as ReadonlyMap<number, number>;
    const k = x - y;
    const wasK = isDown(reach, k, changes) ? k + 1 : k - 1;
    const wasX = reach.get(wasK) ?? 0;
    const wasY = wasX - wasK;
    while (x > wasX && y > wasY && x > 0 && y > 0) {
      lines.push({ kind: 'same', line: a[--x] as string });
      y--;
    }
    if (changes === 0) break;
    if (x === wasX) lines.push({ kind: 'new', line: b[--y] as string });
    else lines.push({ kind: 'gone', line: a[--x] as string });
  }
  const parts: { kind: DiffPart['kind']; lines: string[] }[] = [];
  for (const { kind, line } of lines.reverse()) {
    const last = parts.at(-1);
    if (last?.kind === kind) last.lines.push(line);
    else parts.push({ kind, lines: [line] });
  }
  return parts;
}
