/** Metric readings over time: reading a range, aggregating and pruning. */
import { formatTime, readTime } from '../platform/clock.ts';
import { invalidField } from '../platform/errors.ts';
import { type Static, Type } from '../platform/json/json-schema.ts';
import type { Statement } from './metadata.ts';
import { COARSE_STEP, FINE_STEP, type Figures, type Sample, type SamplesStore } from './samples-store.ts';

const COARSE_MS = COARSE_STEP * 1000;
const FINE_KEPT_MS = 3_600_000;
const COARSE_KEPT_MS = 30 * 24 * 3_600_000;
/** Slightly longer, so that the last hour is complete. */
const FINE_PRUNED_MS = FINE_KEPT_MS + COARSE_MS;

/**
 * The history of the range: one entry per step with a reading, oldest first, with its start and the
 * result of `show` for its figures. Empty without a range.
 */
export async function historyOf<Figure extends string, Shown>(
  store: SamplesStore<Figure>,
  { owner, range }: { readonly owner: number; readonly range: MetricsRange | null },
  show: (figures: Figures<Figure>) => Shown,
): Promise<{ readonly history?: (Shown & { readonly timestamp: string })[] }> {
  if (range === null) return {};
  const cut = Math.min(Math.max(range.from, range.fineFrom), range.to);
  const coarse = await store.range(owner, COARSE_STEP, { from: range.from, to: cut });
  const fine = await store.range(owner, FINE_STEP, { from: cut, to: range.to });
  const steps = Map.groupBy([...coarse, ...fine], ({ at }) => at - (at % range.stepMs));
  const entry = (at: number, rows: readonly Sample<Figure>[]) => {
    return { timestamp: formatTime(at), ...show(combine(store, rows)) };
  };
  return { history: [...steps].map(([at, rows]) => entry(at, rows)) };
}

/** Aggregates like SamplesStore.aggregate(). `rows` must not be empty. */
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

/** Aggregates fine readings into coarse ones, and deletes old ones. */
export class SampleUpkeep<Figure extends string> {
  readonly #store: SamplesStore<Figure>;
  #aggregatedTo: number | undefined;

  constructor(store: SamplesStore<Figure>) {
    this.#store = store;
  }

  /**
   * The statements that are due; `isQuiet`: no coarse step has ended since. Call done() once they are stored.
   */
  due(now: number): { readonly statements: readonly Statement[]; readonly isQuiet: boolean } {
    const to = endOfStep(now);
    // After a start everything is aggregated again: the last steps before the stop may be missing.
    let from = this.#aggregatedTo ?? 0;
    // After the wall clock was set back, steps are aggregated again, from rows that still exist.
    if (from > to) from = to - FINE_KEPT_MS;
    const store = this.#store;
    const statements = [
      ...(from < to ? [store.aggregate({ from, to })] : []),
      // Whole steps only: a coarse row is never made from a partly pruned step.
      store.prune(FINE_STEP, to - FINE_PRUNED_MS),
      store.prune(COARSE_STEP, to - COARSE_KEPT_MS),
    ];
    return { statements, isQuiet: from >= to };
  }

  /** `now`: the value passed to due(). */
  done(now: number): void {
    this.#aggregatedTo = endOfStep(now);
  }
}

function endOfStep(now: number): number {
  return now - (now % COARSE_MS);
}

export interface RangeText {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  /** Seconds. */
  readonly step?: number | undefined;
}

export interface MetricsRange {
  /** ms since 1970, inclusive. */
  readonly from: number;
  /** Exclusive. */
  readonly to: number;
  readonly stepMs: number;
  /** Readings before this moment are coarse. */
  readonly fineFrom: number;
}

const HOUR_MS = 3_600_000;
/** Thirty days of 300 s are 8,640 steps; more would be an export, not a chart. */
const MAX_STEPS = 11_000;

/** Null: no field was sent. Throws `invalid_request` that names the field. */
export function readRange(text: RangeText, now: number): MetricsRange | null {
  if (text.from === undefined && text.to === undefined && text.step === undefined) return null;
  // Includes a reading of this moment.
  const to = text.to === undefined ? now + 1 : readTime('to', text.to);
  const from = text.from === undefined ? to - HOUR_MS : readTime('from', text.from);
  if (from >= to) throw invalidField('from', 'must be before to');
  // Only whole coarse steps: a reading is either in a coarse row or fine, never both.
  const fineFrom = Math.ceil((now - HOUR_MS) / COARSE_MS) * COARSE_MS;
  // Requests for the last hour get fine readings, even some seconds late.
  const isFine = from >= now - HOUR_MS - COARSE_MS;
  const step = text.step ?? (isFine ? FINE_STEP : COARSE_STEP);
  if (!isFine && step % COARSE_STEP !== 0) {
    throw invalidField('step', `must be a multiple of ${COARSE_STEP} for readings older than an hour`);
  }
  if ((to - from) / (step * 1000) > MAX_STEPS) {
    throw invalidField('step', `is too short for this range (at most ${MAX_STEPS} steps)`);
  }
  return { from, to, stepMs: step * 1000, fineFrom: isFine ? from : fineFrom };
}

/** Query parameters for readings over time. */
const TIME = 'YYYY-MM-DD HH:MM:SS (UTC) or ISO 8601';

export const MetricsQuery = Type.Object({
  from: Type.Optional(
    Type.String({ maxLength: 40, description: `${TIME}; default: one hour before \`to\`` }),
  ),
  to: Type.Optional(Type.String({ maxLength: 40, description: `${TIME}, exclusive; default: now` })),
  step: Type.Optional(
    Type.Integer({
      minimum: 5,
      maximum: 86_400,
      multipleOf: 5,
      description: 'Seconds; readings older than an hour have steps of 300. Default: the finest available',
    }),
  ),
});
export type MetricsQuery = Static<typeof MetricsQuery>;
