/** The rows of a CSV file (RFC 4180), or of its beginning; delimiter and types are guessed. */

export interface CsvTable {
  readonly columns: readonly CsvColumn[];
  readonly rows: readonly (readonly string[])[];
  /** There are more rows or columns than returned. */
  readonly isCut: boolean;
}

export interface CsvColumn {
  readonly name: string;
  readonly type: 'number' | 'date' | 'true or false' | 'text';
}

const MOST_COLUMNS = 200;
const DELIMITERS = [',', ';', '\t', '|'];

/** At most `most` rows below the heading. `isWhole`: the text is complete, not cut within a row. */
export function readCsv(text: string, { most, isWhole }: { most: number; isWhole: boolean }): CsvTable {
  const body = text.startsWith('\ufeff') ? text.slice(1) : text;
  const all = rowsOf(body, delimiterOf(body), most + 2);
  if (!isWhole && all.length < most + 2) all.pop();
  const [head = [], ...below] = all;
  const width = Math.min(
    MOST_COLUMNS,
    Math.max(head.length, ...below.slice(0, 100).map((row) => row.length)),
  );
  const rows = below.slice(0, most).map((row) => row.slice(0, width));
  const columns = Array.from({ length: width }, (_, at) => ({
    name: head[at] ?? '',
    type: typeOf(rows, at),
  }));
  return { columns, rows, isCut: !isWhole || below.length > most || head.length > width };
}

/** The most frequent one in the first line. */
function delimiterOf(text: string): string {
  const line = text.slice(0, text.search(/\r?\n|$/)).replace(/"[^"]*"/g, '');
  const counts = DELIMITERS.map((one) => line.split(one).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] ?? ',';
}

function rowsOf(text: string, delimiter: string, most: number): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  for (let at = 0; at < text.length && rows.length < most; ) {
    const { value, next } = fieldAt(text, at, delimiter);
    row.push(value);
    at = next;
    if (text[at] === delimiter) {
      at++;
      if (at < text.length) continue;
      row.push('');
    }
    if (text[at] === '\r') at++;
    if (text[at] === '\n') at++;
    // A blank line is not a row.
    if (row.length > 1 || row[0] !== '') rows.push(row);
    row = [];
  }
  return rows;
}

function fieldAt(text: string, start: number, delimiter: string): { value: string; next: number } {
  if (text[start] !== '"') {
    let next = start;
    while (next < text.length && text[next] !== delimiter && text[next] !== '\n' && text[next] !== '\r')
      next++;
    return { value: text.slice(start, next), next };
  }
  for (let at = start + 1; ; ) {
    const quote = text.indexOf('"', at);
    if (quote === -1) return { value: text.slice(start + 1).replaceAll('""', '"'), next: text.length };
    if (text[quote + 1] !== '"') {
      let next = quote + 1;
      while (next < text.length && text[next] !== delimiter && text[next] !== '\n' && text[next] !== '\r')
        next++;
      return {
        value: text.slice(start + 1, quote).replaceAll('""', '"') + text.slice(quote + 1, next),
        next,
      };
    }
    at = quote + 2;
  }
}

const IS_TYPE: Readonly<Record<Exclude<CsvColumn['type'], 'text'>, RegExp>> = {
  number: /^[+-]?(?:\d+(?:[.,]\d+)?|\.\d+)(?:e[+-]?\d+)?$/i,
  date: /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?$/,
  'true or false': /^(?:true|false)$/i,
};

function typeOf(rows: readonly (readonly string[])[], at: number): CsvColumn['type'] {
  const values = rows.map((row) => row[at]?.trim() ?? '').filter((value) => value !== '');
  if (values.length === 0) return 'text';
  const types = ['number', 'date', 'true or false'] as const;
  return types.find((type) => values.every((value) => IS_TYPE[type].test(value))) ?? 'text';
}

const { compare } = new Intl.Collator(undefined, { numeric: true });

/** Sorted by a column's type; empty values last. */
export function sortedBy(
  { columns, rows }: CsvTable,
  at: number,
  isDescending: boolean,
): readonly (readonly string[])[] {
  const way = isDescending ? -1 : 1;
  const isNumber = columns[at]?.type === 'number';
  const numberOf = (value: string) => Number(value.replace(',', '.'));
  return rows.toSorted((one, other) => {
    const [a, b] = [one[at]?.trim() ?? '', other[at]?.trim() ?? ''];
    if (a === '' || b === '') return Number(a === '') - Number(b === '');
    return way * (isNumber ? numberOf(a) - numberOf(b) : compare(a, b));
  });
}
