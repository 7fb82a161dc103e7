/** Operators that need nothing but the values of their operands. */
import { CommandError } from '../../command-error.ts';
import type { Collation } from '../../values/collations.ts';

export interface Operator {
  /** Minimum number of operands; undefined: any number. */
  readonly from?: number;
  readonly to?: number;
  /** A missing value is undefined. Throws CommandError. */
  work(values: unknown[], collation: Collation | null): unknown;
}

/** Throws CommandError for a wrong number of operands. */
export function assertCount(
  name: string,
  { from = 0, to = Number.POSITIVE_INFINITY }: Operator,
  count: number,
): void {
  if (count >= from && count <= to) return;
  const isFixed = from === to;
  const wanted = isFixed ? `exactly ${from}` : `at least ${from} arguments, and at most ${to}`;
  throw new CommandError(
    isFixed ? 16020 : 28667,
    `Expression ${name} takes ${wanted} arguments. ${count} were passed in.`,
  );
}
