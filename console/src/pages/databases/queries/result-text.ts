/** Results as text: in a cell, as CSV, as JSON. */

interface Rows {
  readonly columns: readonly { readonly name: string }[];
  readonly rows: readonly (readonly unknown[])[];
}

export function cellText(cell: unknown): string {
  if (cell === null || cell === undefined) return '';
  return typeof cell === 'object' ? JSON.stringify(cell) : String(cell);
}

/** Spreadsheets treat text with such a beginning as a formula; numbers are safe. */
const FORMULA = /^[=+\-@\t\r](?![\d.]+(?:e[+-]?\d+)?$)/i;

/** NULL is an empty cell, and an empty text is `""`. */
function csvCell(cell: unknown): string {
  const word = cellText(cell);
  const safe = typeof cell === 'string' && FORMULA.test(word) ? `'${word}` : word;
  return cell === '' || /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** CSV of RFC 4180 for spreadsheets: text that looks like a formula gets an apostrophe in front. */
export function asCsv({ columns, rows }: Rows): string {
  const lines = [columns.map(({ name }) => name), ...rows];
  return lines.map((line) => `${line.map(csvCell).join(',')}\r\n`).join('');
}

/** One object per row. Duplicate column names get a number. */
export function asJson({ columns, rows }: Rows): string {
  const seen = new Map<string, number>();
  const names = columns.map(({ name }) => {
    const before = seen.get(name) ?? 0;
    seen.set(name, before + 1);
    return before === 0 ? name : `${name}_${before + 1}`;
  });
  const objects = rows.map((row) => Object.fromEntries(row.map((cell, index) => [names[index], cell])));
  return `${JSON.stringify(objects, null, 2)}\n`;
}
