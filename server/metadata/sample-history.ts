/** Readings over time: what of them a caller is shown, and which are kept. */
import type { Statement } from './metadata.ts';
import type { MetricsRange } from './sample-range.ts';
import { COARSE_STEP, FINE_STEP, type Figures, type Sample, type SamplesStore } from './samples-store.ts';

const COARSE_MS = COARSE_STEP * 1000;
const FINE_KEPT_MS = 3_600_000;
const COARSE_KEPT_MS = 30 * 24 * 3_600_000;
/** A little longer, for callers who mean the last hour and ask a moment later. */
const FINE_PRUNED_MS = FINE_KEPT_MS + COARSE_MS;

/** One entry for each step of the range in which something was read, oldest first, with its beginning. */
export async function readHistory<Figure extends string>(
  store: SamplesStore<Figure>,
  owner: number,
  range: MetricsRange,
): Promise<(readonly [at: number, Figures<Figure>])[]> {
  const cut = Math.min(Math.max(range.from, range.fineFrom), range.to);
  const coarse = await store.range(owner, COARSE_STEP, { from: range.from, to: cut });
  const fine = await store.range(owner, FINE_STEP, { from: cut, to: range.to });
  const steps = Map.groupBy([...coarse, ...fine], ({ at }) => at - (at % range.stepMs));
  return [...steps].map(([at, rows]) => [at, combine(store, rows)]);
}

/** As a coarse row is made. `rows` has at least one. */
function combine<Figure extends string>(
  { table }: SamplesStore<Figure>,
  rows: readonly Sample<Figure>[],
): Figures<Figure> {
  const mean = (figure: Figure) => {
    const known = rows.map((row) => row[figure]).filter((value) => value !== null);
    return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0) / known.length;
  };
  const last = rows.at(-1);
  const figures = Object.keys(table.figures) as Figure[];
  const entries = figures.map((figure) => {
    return [figure, table.figures[figure] === 'newest' ? (last?.[figure] ?? null) : mean(figure)] as const;
  });
  return Object.fromEntries(entries) as Figures<Figure>;
}

/** Makes coarse readings of fine ones, and drops those that are too old. */
export class SampleUpkeep<Figure extends string> {
  readonly #store: SamplesStore<Figure>;
  #aggregatedTo: number | undefined;

  constructor(store: SamplesStore<Figure>) {
    this.#store = store;
  }

  /** What is due; `isQuiet`: no coarse step has ended since. To be followed by done() once it is stored. */
  due(now: number): { readonly statements: readonly Statement[]; readonly isQuiet: boolean } {
    const to = endOfStep(now);
    // After a start all that is left is looked at: the last steps before the stop may not have been made.
    let from = this.#aggregatedTo ?? 0;
    // A wall clock that was set back leads to steps that are made again, from rows that are still there.
    if (from > to) from = to - FINE_KEPT_MS;
    const store = this.#store;
    const statements = [
      ...(from < to ? [store.aggregate({ from, to })] : []),
      // Whole steps only: a coarse row is never made from what is left of one.
      store.prune(FINE_STEP, to - FINE_PRUNED_MS),
      store.prune(COARSE_STEP, to - COARSE_KEPT_MS),
    ];
    return { statements, isQuiet: from >= to };
  }

  /** `now`: the same as of due(). */
  done(now: number): void {
    this.#aggregatedTo = endOfStep(now);
  }
}

function endOfStep(now: number): number {
  return now - (now % COARSE_MS);
}
