/** MySQL's operators for JSON, `column->'$.a'` and `column->>'$.a'`, as the functions that they stand for. */
import { isName, QUOTED_OR_COMMENT } from './sql-parts.ts';

const TOKEN = new RegExp(`${QUOTED_OR_COMMENT.source}|[\\w$\\x80-\\xff]+|->>?|\\.`, 'g');
const NAMES_OF_COLUMN = 3;

/** Where something is in the text. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Reads a text from its beginning to its end, once: a user may have made it to take long. */
class Arrows {
  readonly #text: string;
  /** Names with dots before the place that was read. */
  #column: (Range & { readonly names: number; readonly awaitsName: boolean }) | null = null;
  /** After a column and an operator. */
  #arrow: (Range & { readonly column: Range; readonly isText: boolean }) | null = null;
  #to = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text without them, and each that was replaced. */
  replaced(): { readonly text: string; readonly replaced: readonly string[] } {
    const text = this.#text;
    const replaced: string[] = [];
    let [made, end] = ['', 0];
    for (const { 0: token, index } of text.matchAll(TOKEN)) {
      const gap = text.slice(this.#to, index);
      this.#to = index + token.length;
      const arrow = this.#arrow;
      if (arrow !== null && isPath(token) && isBlank(gap)) {
        const column = text.slice(arrow.column.from, arrow.column.to);
        const value = `json_extract(${column},${token})`;
        replaced.push(`${column}${text.slice(arrow.from, arrow.to)}${token}`);
        made += text.slice(end, arrow.column.from) + (arrow.isText ? `json_unquote(${value})` : value);
        end = this.#to;
      }
      this.#read(token, { from: index, gap });
    }
    return { text: made + text.slice(end), replaced };
  }

  #read(token: string, { from, gap }: { readonly from: number; readonly gap: string }): void {
    const column = gap.trim() === '' ? this.#column : null;
    const to = from + token.length;
    this.#arrow = null;
    this.#column = null;
    if (isName(token)) {
      const continues = column?.awaitsName === true && column.names < NAMES_OF_COLUMN;
      this.#column = continues
        ? { from: column.from, to, names: column.names + 1, awaitsName: false }
        : { from, to, names: 1, awaitsName: false };
    } else if (column === null || column.awaitsName) return;
    else if (token === '.') this.#column = { ...column, awaitsName: true };
    else if (token.startsWith('->') && isBlank(gap))
      this.#arrow = { from, to, column, isText: token === '->>' };
  }
}

/** A string with its last quote. */
function isPath(token: string): boolean {
  return /^['"]/.test(token) && token.length > 1 && token.at(-1) === token[0];
}

/** Within a line. */
function isBlank(gap: string): boolean {
  return /^[ \t]*$/.test(gap);
}

/** The text without them, and each that was replaced. */
export function withoutArrows(text: string): { readonly text: string; readonly replaced: readonly string[] } {
  return text.includes('->') ? new Arrows(text).replaced() : { text, replaced: [] };
}
