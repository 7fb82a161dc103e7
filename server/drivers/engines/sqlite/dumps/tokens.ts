/** Words, names and literals of SQL text. */

/** Loops over single characters need no memory per repetition: a literal may be as long as a statement. */
const TOKEN =
  /(?<space>[ \t\n\f\r]+|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<text>'[^']*(?:''[^']*)*')|(?<name>"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`|\[[^\]]*\])|(?<word>[A-Za-z_\x80-\uffff][\w$\x80-\uffff]*)|\d[\w.]*|[\s\S]/gy;

export interface Token {
  readonly at: number;
  readonly text: string;
  /** A word in lower case, or a quoted name without its quotes; undefined: neither. */
  readonly name: string | undefined;
  readonly isLiteral: boolean;
}

/** All but blanks and comments. */
export function* tokensOf(sql: string): Generator<Token> {
  for (const { 0: text, index: at, groups = {} } of sql.matchAll(TOKEN)) {
    if (groups.space !== undefined) continue;
    const isLiteral = groups.text !== undefined;
    const name = groups.name === undefined ? groups.word?.toLowerCase() : unquoted(groups.name);
    yield { at, text, name, isLiteral };
  }
}

/** A name as SQLite compares it: without quotes, in lower case. */
export function unquoted(name: string): string {
  const quote = name[0] ?? '';
  if (!'\'"`['.includes(quote)) return name.toLowerCase();
  const inner = name.slice(1, -1);
  return (quote === '[' ? inner : inner.replaceAll(quote + quote, quote)).toLowerCase();
}

/** SQL of a name, in one group. */
export const NAME = String.raw`('[^']*(?:''[^']*)*'|"[^"]*(?:""[^"]*)*"|\x60[^\x60]*(?:\x60\x60[^\x60]*)*\x60|\[[^\]]*\]|[\w$\x80-\uffff]+)`;
