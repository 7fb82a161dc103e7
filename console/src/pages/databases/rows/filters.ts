/** Filters and order of rows, as stored in the URL. */
import type { DatabaseRowFilter, DatabaseRowSort } from '../../../../../sdk/index.ts';

export const OPERATORS = [
  ...(['eq', 'ne', 'lt', 'le', 'gt', 'ge'] as const),
  ...(['contains', 'starts_with', 'is_null', 'is_not_null'] as const),
] as const satisfies readonly DatabaseRowFilter['operator'][];
export type Operator = (typeof OPERATORS)[number];

export const needsValue = (operator: Operator) => operator !== 'is_null' && operator !== 'is_not_null';

function isFilter(found: unknown): found is DatabaseRowFilter {
  if (typeof found !== 'object' || found === null) return false;
  const { column, operator } = found as Partial<DatabaseRowFilter>;
  return typeof column === 'string' && OPERATORS.some((one) => one === operator);
}

export function filtersOf(found: unknown): readonly DatabaseRowFilter[] | undefined {
  const filters = Array.isArray(found) ? found.filter(isFilter) : [];
  return filters.length === 0 ? undefined : filters;
}

export function sortOf(found: unknown): DatabaseRowSort | undefined {
  if (typeof found !== 'object' || found === null) return undefined;
  const { column, descending } = found as Partial<DatabaseRowSort>;
  if (typeof column !== 'string') return undefined;
  return descending === true ? { column, descending } : { column };
}

/** The next order when a column heading is clicked: ascending, descending, none. */
export function nextSort(sort: DatabaseRowSort | undefined, column: string): DatabaseRowSort | undefined {
  if (sort?.column !== column) return { column };
  return sort.descending === true ? undefined : { column, descending: true };
}
