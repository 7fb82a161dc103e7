/** Yardstick and Cloudlet in turn, so that other load on the host affects both equally. */

/** The result of one comparison. `ratio` is the median of the rounds. */
export interface Comparison {
  readonly ratio: number;
  readonly lowest: number;
  readonly highest: number;
  /** Medians. */
  readonly yardstick: number;
  readonly ours: number;
  readonly rounds: number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle];
  const lower = sorted[sorted.length % 2 === 0 ? middle - 1 : middle];
  if (upper === undefined || lower === undefined) throw new Error('no values to take the median of');
  return (lower + upper) / 2;
}

/** Cloudlet ÷ yardstick in each round, which must be the same kind of quantity. */
export function compare(yardstick: readonly number[], ours: readonly number[]): Comparison {
  const ratios = ours.map((value, round) => value / (yardstick[round] ?? Number.NaN));
  return {
    ratio: median(ratios),
    lowest: Math.min(...ratios),
    highest: Math.max(...ratios),
    yardstick: median(yardstick),
    ours: median(ours),
    rounds: ours.length,
  };
}

/** Runs every measurement once per round, in turn; the first round warms up and is dropped. */
export async function interleave<Name extends string>(
  rounds: number,
  measurements: Readonly<Record<Name, () => Promise<number>>>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(measurements) as Name[];
  const values = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, number[]>;
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      const value = await measurements[name]();
      if (round > 0) values[name].push(value);
    }
  }
  return values;
}
