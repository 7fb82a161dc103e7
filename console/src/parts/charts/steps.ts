/** Readings of the API as points of a chart. Steps without a reading stay empty. */

/** Time spans, and the step of each. */
export const SPANS = {
  hour: { seconds: 3600, step: 15, refreshMs: 15_000 },
  day: { seconds: 86_400, step: 300, refreshMs: 60_000 },
  month: { seconds: 30 * 86_400, step: 3600, refreshMs: 300_000 },
} as const;
export type Span = keyof typeof SPANS;

/**
 * The span whose step suits a resource: in its first hour, a day has one reading each 5 minutes, which is no
 * line yet.
 */
export function readingsFor(chosen: Span, createdAt: string, now = Date.now()): Span {
  const seconds = (now - msOf(createdAt)) / 1000;
  const spans = Object.keys(SPANS) as Span[];
  return spans.find((one) => one === chosen || seconds <= SPANS[one].seconds) ?? chosen;
}

/** The query of a metrics call for this span, up to `now` (ms). */
export function spanQuery(span: Span, now = Date.now()) {
  const { seconds, step } = SPANS[span];
  const end = Math.floor(now / 1000);
  return {
    from: new Date((end - seconds) * 1000).toISOString(),
    to: new Date(end * 1000).toISOString(),
    step,
  };
}

export interface Series<T> {
  /** s since 1970: every step of the span, or since the resource was created. */
  readonly times: readonly number[];
  readonly steps: readonly (T | undefined)[];
  readonly step: number;
}

/** Steps of the shortest chart. */
const LEAST_STEPS = 20;

/** Puts each reading at its step, from the first one on. */
export function onSteps<T extends { readonly timestamp: string }>(
  history: readonly T[],
  span: Span,
  now = Date.now(),
): Series<T> {
  const { seconds, step } = SPANS[span];
  const end = Math.floor(now / 1000 / step) * step;
  const read = new Map(history.map((entry) => [msOf(entry.timestamp) / 1000, entry]));
  // The charts of a resource younger than the span begin with its creation.
  const oldest = Math.min(...read.keys(), end - LEAST_STEPS * step);
  const begin = Math.max(end - seconds, Math.floor(oldest / step) * step);
  const times = Array.from({ length: (end - begin) / step + 1 }, (_, index) => begin + index * step);
  return { times, steps: times.map((time) => read.get(time)), step };
}

const msOf = (timestamp: string): number => Date.parse(`${timestamp.replace(' ', 'T')}Z`);

/** A figure as read. */
export function gauge<T>({ steps }: Series<T>, pick: (entry: T) => number | null): (number | null)[] {
  return steps.map((entry) => (entry === undefined ? null : pick(entry)));
}

/** Growth of a counter per second; null after a gap and after a reset. */
export function rate<T>({ steps, step }: Series<T>, pick: (entry: T) => number | null): (number | null)[] {
  return steps.map((entry, index) => {
    const before = steps[index - 1];
    const now = entry === undefined ? null : pick(entry);
    const then = before === undefined ? null : pick(before);
    return now === null || then === null || now < then ? null : (now - then) / step;
  });
}
