/**
 * Arranges the commits of a batch for PostgreSQL, which handles each statement over a socket:
 * neighbours of the same form become one statement for all their rows, and amounts for the same row
 * are summed.
 */
import { type Increment, isIncrement, type SqlValue, type Statement } from '../../metadata/metadata.ts';

/** A commit with the row ids of its INSERTs assigned. */
export type Ready = readonly ReadyStatement[];

export interface ReadyStatement extends Omit<Statement, 'params'> {
  readonly params: readonly SqlValue[];
  readonly amounts?: readonly number[];
}

/** A statement to send. */
export interface Step {
  readonly sql: string;
  /** Params of each row; several: `sql` is needed for many rows. */
  readonly rows: readonly (readonly SqlValue[])[];
  /** Rows that must change; undefined: any number. */
  readonly expected: number | undefined;
}

/**
 * The steps of a batch, in order. Adjacent statements of similar commits are grouped, so that a
 * later one of the first commit may run after an earlier one of the second; if a rule refuses
 * because of this, the commits of the batch are stored one by one.
 */
export function stepsOf(commits: readonly Ready[]): Step[] {
  const steps: Step[] = [];
  const sums = new Map<string, { readonly statement: Increment; readonly params: SqlValue[] }>();
  for (let at = 0; at < commits.length; ) {
    const first = commits[at] as Ready;
    let end = at + 1;
    while (end < commits.length && areAlike(first, commits[end] as Ready)) end++;
    const group = commits.slice(at, end);
    for (const [index, { sql, expectChanges }] of first.entries()) {
      const each = group.map((commit) => commit[index] as ReadyStatement);
      if (isIncrement(first[index] as Statement)) for (const one of each) addUp(sums, one as Increment);
      else
        steps.push({
          sql,
          rows: each.map(({ params }) => params),
          expected: expectChanges === undefined ? undefined : expectChanges * group.length,
        });
    }
    at = end;
  }
  // In commit order: a limit is checked before the statements that it limits.
  for (const { statement, params } of sums.values()) {
    steps.push({ sql: statement.sql, rows: [params], expected: statement.expectChanges });
  }
  return steps;
}

function areAlike(one: Ready, other: Ready): boolean {
  return (
    one.length === other.length &&
    one.every(({ sql, expectChanges, params }, i) => {
      const same = other[i] as ReadyStatement;
      return sql === same.sql && expectChanges === same.expectChanges && params.length === same.params.length;
    })
  );
}

function addUp(
  sums: Map<string, { readonly statement: Increment; readonly params: SqlValue[] }>,
  statement: Increment,
): void {
  const { sql, params, amounts } = statement;
  const fixed = params.filter((_, i) => !amounts.includes(i));
  const key = `${sql}\0${fixed.join('\0')}`;
  const known = sums.get(key);
  if (known === undefined) sums.set(key, { statement, params: [...(params as SqlValue[])] });
  else
    for (const i of amounts)
      known.params[i] = BigInt(known.params[i] as number) + BigInt(params[i] as number);
}
