/** Results as text: in a cell, as CSV, as JSON. */
import type { DatabaseQueryResult } from '../../../../sdk/index.ts';

export function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  return typeof cell === 'object' ? JSON.stringify(cell) : String(cell);
}

const csvCell = (word: string) => (/[",\r\n]/.test(word) ? `"${word.replaceAll('"', '""')}"` : word);

/** As RFC 4180 has it; NULL is an empty cell. */
export function asCsv({ columns, rows }: DatabaseQueryResult): string {
  const lines = [columns.map(({ name }) => name), ...rows.map((row) => row.map(cellText))];
  return lines.map((line) => `${line.map(csvCell).join(',')}\r\n`).join('');
}

/** An object for each row. Of two columns with one name, the second has a number. */
export function asJson({ columns, rows }: DatabaseQueryResult): string {
  const seen = new Map<string, number>();
  const names = columns.map(({ name }) => {
    const before = seen.get(name) ?? 0;
    seen.set(name, before + 1);
    return before === 0 ? name : `${name}_${before + 1}`;
  });
  const objects = rows.map((row) => Object.fromEntries(row.map((cell, index) => [names[index], cell])));
  return `${JSON.stringify(objects, null, 2)}\n`;
}
