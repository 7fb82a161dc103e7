/**
 * Finds where a text stops being JSON, and what was expected there. JSON.parse reports neither reliably; this
 * runs only after it has failed.
 */

const SPACE = /[ \t\n\r]*/y;
const SCALAR = /(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.+-])/y;
/** A string without its closing quote. */
const STRING = /"(?:[ !#-[\]-\uffff]+|\\["\\/bfnrt]|\\u[\da-fA-F]{4})*/y;

/** A message such as `line 2, column 7: a comma or } was expected`. */
export function jsonFault(text: string): string {
  const walk = new Walk(text);
  let expected: string | undefined;
  while (expected === undefined) expected = walk.step();
  const before = text.slice(0, walk.at);
  const line = before.split('\n').length;
  const column = [...before.slice(before.lastIndexOf('\n') + 1)].length + 1;
  const said =
    walk.at >= text.length ? `the text ends where ${expected} was expected` : `${expected} was expected`;
  return `line ${line}, column ${column}: ${said}`;
}

/** Scans the text without recursion: nesting may be as deep as the text is long. */
class Walk {
  at = 0;
  readonly #text: string;
  /** Closing brackets of open ones, innermost last. */
  readonly #closing: ('}' | ']')[] = [];
  #due: 'value' | 'name' | 'colon' | 'more' = 'value';
  /** The last token if it was a bracket, comma or colon. */
  #last = '';

  constructor(text: string) {
    this.#text = text;
  }

  /** Reads one token. Returns what was expected if the token is wrong. */
  step(): string | undefined {
    this.#match(SPACE);
    const next = this.#text[this.at] ?? '';
    const closing = this.#closing.at(-1);
    if (next === closing) {
      if (this.#last === ',') return `a value between the comma and ${closing}`;
      if (this.#due === 'more' || this.#last === '{' || this.#last === '[') return this.#close();
    }
    if (this.#due === 'more') return this.#takeComma(next);
    if (this.#due === 'colon') return next === ':' ? this.#take(next, 'value') : 'a colon';
    if (next === '"') return this.#takeString();
    if (next === "'") return 'a double quote instead of a single quote';
    if (this.#due === 'name') return "a member's name in double quotes";
    if (next === '{') return this.#open(next, '}', 'name');
    if (next === '[') return this.#open(next, ']', 'value');
    if (!this.#match(SCALAR)) return 'a value (text in double quotes, a number, true, false, null, [ or {)';
    return this.#take('', 'more');
  }

  #takeComma(next: string): string | undefined {
    const closing = this.#closing.at(-1);
    if (closing === undefined) return 'the end of the text';
    if (next === ',') return this.#take(next, closing === '}' ? 'name' : 'value');
    return `a comma or ${closing}`;
  }

  #takeString(): string | undefined {
    const isName = this.#due === 'name';
    this.#match(STRING);
    const end = this.#text[this.at];
    if (end === '"') {
      this.at++;
      return this.#take('', isName ? 'colon' : 'more');
    }
    if (end === '\\') return 'one of the escapes \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u1234';
    return end === undefined ? 'a closing double quote' : 'an escape (\\n for a line end)';
  }

  #open(bracket: string, closing: '}' | ']', due: 'name' | 'value'): undefined {
    this.#closing.push(closing);
    return this.#take(bracket, due);
  }

  #close(): undefined {
    this.#closing.pop();
    this.at++;
    return this.#take('', 'more');
  }

  #take(token: string, due: 'value' | 'name' | 'colon' | 'more'): undefined {
    this.at += token.length;
    this.#last = token;
    this.#due = due;
    return undefined;
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.at += found.length;
    return found !== '';
  }
}
