/** Tables as CSV (RFC 4180) that spreadsheets open without running anything in them. */

export type Cell = string | number;

const MUST_QUOTE = /[",\r\n]/;
/** A spreadsheet takes text that begins so for a formula. */
const FORMULA = /^[=+\-@\t\r]/;

/** Rows end with CRLF. Text that a spreadsheet would compute is put behind an apostrophe. */
export function csvText(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(cellText).join(',')}\r\n`).join('');
}

function cellText(cell: Cell): string {
  if (typeof cell === 'number') return plainNumber(cell);
  const text = FORMULA.test(cell) ? `'${cell}` : cell;
  return MUST_QUOTE.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Without an exponent, which JavaScript writes for very small ones. */
function plainNumber(value: number): string {
  const text = String(value);
  return text.includes('e') ? value.toFixed(9).replace(/0+$/, '').replace(/\.$/, '') : text;
}

/** True when the Accept header prefers CSV to JSON. */
export function prefersCsv(accept: string | undefined): boolean {
  if (accept === undefined) return false;
  const weights = new Map<string, number>();
  for (const part of accept.split(',')) {
    const [type = '', ...parameters] = part.split(';').map((piece) => piece.trim().toLowerCase());
    const quality = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2);
    const weight = quality === undefined ? 1 : Number(quality);
    weights.set(type, Number.isFinite(weight) ? weight : 0);
  }
  const weightOf = (type: string, family: string) =>
    weights.get(type) ?? weights.get(family) ?? weights.get('*/*') ?? 0;
  return weightOf('text/csv', 'text/*') > weightOf('application/json', 'application/*');
}
