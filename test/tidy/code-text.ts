/**
 * Splits a TypeScript file into code, comments and strings, so that a rule about code is not fooled by
 * a comment. A scanner, not a parser: it knows comments, strings, templates (their `${}` are code) and
 * regular expressions (by the character before them). JSX text is taken for code, which is harmless
 * except for quotes in it; a quoted string therefore ends at the end of its line at the latest.
 */

export interface StringLiteral {
  readonly index: number;
  /** As written, without quotes; of a template, each piece between `${}` is one literal. */
  readonly value: string;
}

export interface CodeText {
  /** The file with the insides of comments, strings and regular expressions blanked; every index stays. */
  readonly code: string;
  readonly strings: readonly StringLiteral[];
}

const BEFORE_REGEX =
  /(?:^|[(,=:[!&|?{};+\-*%<>~^]|=>|\b(?:return|typeof|case|in|of|do|else|void|delete|throw|await|yield))\s*$/;

export function readCode(text: string): CodeText {
  return new Scanner(text).scan();
}

class Scanner {
  readonly #text: string;
  readonly #strings: StringLiteral[] = [];
  #code = '';
  #at = 0;
  /** For each open template expression, the depth of braces within it. */
  readonly #templates: number[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  scan(): CodeText {
    while (this.#at < this.#text.length) this.#step();
    return { code: this.#code, strings: this.#strings };
  }

  #step(): void {
    const char = this.#text.charAt(this.#at);
    const pair = this.#text.slice(this.#at, this.#at + 2);
    if (pair === '//') this.#blankTo(this.#endOfLine());
    else if (pair === '/*') this.#blankTo(this.#indexAfter('*/'));
    else if (char === "'" || char === '"') this.#quoted(char);
    else if (char === '`') this.#template();
    else if (char === '/' && BEFORE_REGEX.test(this.#code.slice(-40))) this.#regex();
    else if (char === '}' && this.#templates.at(-1) === 0) {
      this.#templates.pop();
      this.#template();
    } else {
      const depth = this.#templates.length - 1;
      if (char === '{' && depth >= 0) this.#templates[depth] = (this.#templates[depth] ?? 0) + 1;
      if (char === '}' && depth >= 0) this.#templates[depth] = (this.#templates[depth] ?? 0) - 1;
      this.#keepTo(this.#at + 1);
    }
  }

  #keepTo(end: number): void {
    this.#code += this.#text.slice(this.#at, end);
    this.#at = end;
  }

  #blankTo(end: number): void {
    this.#code += this.#text.slice(this.#at, end).replace(/[^\n]/g, ' ');
    this.#at = end;
  }

  #endOfLine(): number {
    const end = this.#text.indexOf('\n', this.#at);
    return end === -1 ? this.#text.length : end;
  }

  #indexAfter(mark: string): number {
    const end = this.#text.indexOf(mark, this.#at + 2);
    return end === -1 ? this.#text.length : end + mark.length;
  }

  #quoted(quote: string): void {
    const start = this.#at + 1;
    let end = start;
    const lineEnd = this.#endOfLine();
    while (end < lineEnd && this.#text.charAt(end) !== quote) end += this.#text.charAt(end) === '\\' ? 2 : 1;
    this.#literal(start, Math.min(end, lineEnd));
  }

  /** From a backtick, or from the `}` that ends an expression, to the next `${` or the closing backtick. */
  #template(): void {
    const start = this.#at + 1;
    let end = start;
    while (end < this.#text.length && this.#text.charAt(end) !== '`') {
      if (this.#text.startsWith('${', end)) {
        this.#literal(start, end, end + 2);
        this.#templates.push(0);
        return;
      }
      end += this.#text.charAt(end) === '\\' ? 2 : 1;
    }
    this.#literal(start, end);
  }

  #literal(start: number, end: number, resume = end + 1): void {
    this.#strings.push({ index: start, value: this.#text.slice(start, end) });
    this.#keepTo(start);
    this.#blankTo(end);
    this.#keepTo(Math.min(resume, this.#text.length));
  }

  #regex(): void {
    const lineEnd = this.#endOfLine();
    let end = this.#at + 1;
    let inClass = false;
    while (end < lineEnd && (inClass || this.#text.charAt(end) !== '/')) {
      const char = this.#text.charAt(end);
      if (char === '[') inClass = true;
      if (char === ']') inClass = false;
      end += char === '\\' ? 2 : 1;
    }
    this.#keepTo(this.#at + 1);
    this.#blankTo(Math.min(end, lineEnd));
    if (this.#at < lineEnd) this.#keepTo(this.#at + 1);
  }
}
