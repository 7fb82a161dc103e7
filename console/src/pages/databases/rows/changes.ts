/** Collected changes of rows, before they run. */
import { isBytes } from './cells.ts';

export type Row = readonly unknown[];

/** One of the API's DatabaseRowChange. */
interface RowChange {
  readonly action: 'insert' | 'update' | 'delete';
  readonly old?: Record<string, unknown>;
  readonly values?: Record<string, unknown>;
}

interface Update {
  readonly old: Row;
  /** Keyed by the column's index. */
  readonly values: ReadonlyMap<number, unknown>;
}

export interface Pending {
  /** Keyed by the row's key, here and below. */
  readonly updates: ReadonlyMap<string, Update>;
  readonly deletes: ReadonlyMap<string, Row>;
  /** New rows; a column without a value gets its default. */
  readonly inserts: readonly ReadonlyMap<number, unknown>[];
}

export const NO_CHANGES: Pending = { updates: new Map(), deletes: new Map(), inserts: [] };

export function countOf({ updates, deletes, inserts }: Pending): number {
  const lost = [...updates.keys()].filter((key) => deletes.has(key)).length;
  return updates.size - lost + deletes.size + inserts.length;
}

/** The values that identify a row; `keys`: indexes of the columns. */
export function keyOf(row: Row, keys: readonly number[]): string {
  return JSON.stringify(keys.map((at) => row[at]));
}

interface Edit {
  readonly key: string;
  readonly old: Row;
  readonly column: number;
  readonly value: unknown;
}

/** An unchanged value is not a change. */
export function withValue(pending: Pending, { key, old, column, value }: Edit): Pending {
  const values = new Map(pending.updates.get(key)?.values);
  if (value === old[column]) values.delete(column);
  else values.set(column, value);
  const updates = new Map(pending.updates);
  if (values.size === 0) updates.delete(key);
  else updates.set(key, { old, values });
  return { ...pending, updates };
}

export function withInserted(
  pending: Pending,
  at: number,
  [column, value]: readonly [number, unknown],
): Pending {
  const inserts = pending.inserts.map((row, index) => (index === at ? new Map(row).set(column, value) : row));
  return { ...pending, inserts };
}

/** Marks a row for deletion, or removes the mark. */
export function toggleDelete(pending: Pending, key: string, old: Row): Pending {
  const deletes = new Map(pending.deletes);
  if (!deletes.delete(key)) deletes.set(key, old);
  return { ...pending, deletes };
}

/** Deletes first, so that a new row may reuse a key. */
export function changesOf({ updates, deletes, inserts }: Pending, names: readonly string[]): RowChange[] {
  const named = (entries: Iterable<readonly [number, unknown]>) =>
    Object.fromEntries([...entries].map(([at, value]) => [names[at] ?? '', value]));
  return [
    ...[...deletes.values()].map((old) => ({ action: 'delete' as const, old: named(old.entries()) })),
    ...[...updates]
      .filter(([key]) => !deletes.has(key))
      .map(([, { old, values }]) => ({
        action: 'update' as const,
        old: named(old.entries()),
        values: named(values),
      })),
    ...inserts.map((values) => ({ action: 'insert' as const, values: named(values) })),
  ];
}

/** The value of typed text: a number stays a number; the engine converts all other types. */
export function typedValue(text: string, before: unknown): unknown {
  if (typeof before === 'number' && String(Number(text)) === text) return Number(text);
  if (typeof before === 'boolean' && (text === 'true' || text === 'false')) return text === 'true';
  return text;
}

/** undefined: it cannot be edited as text. */
export function editedText(value: unknown): string | undefined {
  if (isBytes(value)) return undefined;
  if (value === null || value === undefined) return '';
  return typeof value === 'object' ? undefined : String(value);
}
