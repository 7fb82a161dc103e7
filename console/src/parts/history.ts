/** Readings of the API as points of a chart. Steps without a reading stay empty. */

/** How far back, and in which steps the API is asked. */
export const SPANS = {
  hour: { seconds: 3600, step: 15, refreshMs: 15_000 },
  day: { seconds: 86_400, step: 300, refreshMs: 60_000 },
  month: { seconds: 30 * 86_400, step: 3600, refreshMs: 300_000 },
} as const;
export type Span = keyof typeof SPANS;

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
  /** s since 1970, every step of the span. */
  readonly times: readonly number[];
  readonly steps: readonly (T | undefined)[];
  readonly step: number;
}

/** Puts each reading at its step. */
export function onSteps<T extends { readonly timestamp: string }>(
  history: readonly T[],
  span: Span,
  now = Date.now(),
): Series<T> {
  const { seconds, step } = SPANS[span];
  const end = Math.floor(now / 1000 / step) * step;
  const read = new Map(
    history.map((entry) => [Date.parse(`${entry.timestamp.replace(' ', 'T')}Z`) / 1000, entry]),
  );
  const times = Array.from(
    { length: Math.floor(seconds / step) + 1 },
    (_, index) => end - seconds + index * step,
  );
  return { times, steps: times.map((time) => read.get(time)), step };
}

/** A figure as it was read. */
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
