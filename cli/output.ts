/** Output of commands: data to standard output, everything else to standard error. */

export type Row = readonly (string | number | null | undefined)[];

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];

/** `1.5 MiB` */
export function sizeText(bytes: number): string {
  let [value, unit] = [bytes, 0];
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

/** `3 files`, `1 file` */
export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'}`;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not get to a terminal
const CONTROLS = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Names may contain characters that move a terminal's cursor, set its title, or reorder letters. */
export function printable(text: string): string {
  return text.replace(CONTROLS, (found) => {
    const hex = found.charCodeAt(0).toString(16);
    return hex.length > 2 ? `\\u${hex.padStart(4, '0')}` : `\\x${hex.padStart(2, '0')}`;
  });
}

/** Lines with control characters removed, so that they cannot move the cursor. */
export function cleaned(log: string): string {
  return log
    .replaceAll('\r', '')
    .split('\n')
    .map((line) => line.split('\t').map(printable).join('\t'))
    .join('\n');
}

/** The value as JSON on one line, safe for a terminal. */
function jsonLine(value: unknown): string {
  const escaped = (found: string) => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return JSON.stringify(value).replace(CONTROLS, escaped);
}

export class Output {
  readonly isJson: boolean;
  readonly isQuiet: boolean;

  constructor({ isJson, isQuiet }: { isJson: boolean; isQuiet: boolean }) {
    this.isJson = isJson;
    this.isQuiet = isQuiet;
  }

  /** Prints a line of data; control characters are escaped. */
  line(text: string): void {
    process.stdout.write(`${printable(text)}\n`);
  }

  /** Prints one item of a list as it arrives. */
  json(item: unknown): void {
    process.stdout.write(`${jsonLine(item)}\n`);
  }

  /** Text of the client itself, in lines. */
  text(lines: string): void {
    process.stdout.write(`${lines}\n`);
  }

  /** Prints a progress note, except with --quiet. */
  note(text: string): void {
    if (!this.isQuiet) process.stderr.write(`${printable(text)}\n`);
  }

  /** A line that --quiet does not silence. */
  warn(text: string): void {
    process.stderr.write(`cloudlet: ${printable(text)}\n`);
  }

  /** Prints required instructions, even with --quiet. */
  ask(...lines: readonly string[]): void {
    for (const text of lines) process.stderr.write(`${printable(text)}\n`);
  }

  /** Prints one item: as JSON, or as lines. */
  one(item: unknown, lines: () => readonly string[]): void {
    if (this.isJson) this.json(item);
    else for (const text of lines()) this.line(text);
  }

  /** A list: one JSON object per line, or a table with these headings. Numbers are right-aligned. */
  table<T>(items: readonly T[], headings: readonly string[], rowOf: (item: T) => Row): void {
    if (this.isJson) {
      for (const item of items) this.json(item);
      return;
    }
    for (const text of tableLines(headings, items.map(rowOf))) this.line(text);
  }
}

function tableLines(headings: readonly string[], rows: readonly Row[]): string[] {
  const texts = rows.map((row) =>
    row.map((cell) => (cell === null || cell === undefined ? '-' : String(cell))),
  );
  const cells = [headings, ...texts].map((row) => row.map(printable));
  const widths = headings.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)));
  const isNumber = headings.map(
    (_, at) => rows.length > 0 && rows.every((row) => typeof row[at] === 'number'),
  );
  return cells.map((row) =>
    row
      .map((cell, at) => (isNumber[at] ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}
