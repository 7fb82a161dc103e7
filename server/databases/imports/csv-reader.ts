/** Cuts CSV text into rows, piece after piece: RFC 4180 with any separator and any line ends. */

/** Text; null: an empty field without quotes, which differs from `""`. */
export type CsvField = string | null;

export interface CsvRow {
  /** The line where it begins, from 1. */
  readonly line: number;
  readonly fields: readonly CsvField[];
}

/** A text that is not CSV, with the line of the first fault. */
export class BrokenText extends Error {
  readonly line: number;

  constructor(line: number, message: string) {
    super(message);
    this.name = 'BrokenText';
    this.line = line;
  }
}

const [QUOTE, CR, LF] = [0x22, 0x0d, 0x0a];

type Where = 'start' | 'plain' | 'quoted' | 'after_quote';

export class CsvReader {
  readonly #separator: number;
  readonly #mostCharacters: number;
  #where: Where = 'start';
  #field = '';
  #fields: CsvField[] = [];
  #characters = 0;
  #line = 1;
  #firstLine = 1;
  #afterCr = false;
  #rows: CsvRow[] = [];

  /** `mostCharacters`: a longer row is a fault, such as an unclosed quote. */
  constructor({ separator, mostCharacters }: { separator: string; mostCharacters: number }) {
    this.#separator = separator.charCodeAt(0);
    this.#mostCharacters = mostCharacters;
  }

  /** The rows that this piece completes. Throws BrokenText. */
  push(text: string): readonly CsvRow[] {
    for (let at = 0; at < text.length; at++) {
      const end = this.#where === 'plain' || this.#where === 'quoted' ? this.#endOfRun(text, at) : at;
      if (end > at) {
        this.#add(text.slice(at, end));
        at = end;
        if (at === text.length) break;
      }
      this.#take(text.charCodeAt(at), text[at] as string);
    }
    return this.#taken();
  }

  /** The last row, if no line end follows it. */
  end(): readonly CsvRow[] {
    if (this.#where === 'quoted')
      throw this.#broken('a quote opens here and is never closed', this.#firstLine);
    if (this.#where !== 'start' || this.#fields.length > 0) this.#endRow();
    return this.#taken();
  }

  /** End of the plain characters. */
  #endOfRun(text: string, from: number): number {
    if (this.#where === 'quoted') {
      const quote = text.indexOf('"', from);
      const end = quote < 0 ? text.length : quote;
      for (let at = text.indexOf('\n', from); at >= 0 && at < end; at = text.indexOf('\n', at + 1))
        this.#line++;
      return end;
    }
    let at = from;
    for (; at < text.length; at++) {
      const code = text.charCodeAt(at);
      if (code === this.#separator || code === CR || code === LF) break;
    }
    return at;
  }

  #take(code: number, character: string): void {
    const wasCr = this.#afterCr;
    this.#afterCr = false;
    if (this.#where === 'quoted') {
      // Only a quote ends a run of quoted text.
      this.#where = 'after_quote';
      return;
    }
    if (code === LF && wasCr && this.#where === 'start' && this.#fields.length === 0) return;
    if (code === this.#separator) this.#endField();
    else if (code === CR || code === LF) {
      this.#endRow();
      this.#line++;
      this.#firstLine = this.#line;
      this.#afterCr = code === CR;
    } else if (code === QUOTE && this.#where === 'start') this.#where = 'quoted';
    else if (code === QUOTE && this.#where === 'after_quote') {
      this.#add('"');
      this.#where = 'quoted';
    } else if (this.#where === 'after_quote') throw this.#broken('text follows a closing quote', this.#line);
    else {
      this.#where = 'plain';
      this.#add(character);
    }
  }

  #add(text: string): void {
    this.#characters += text.length;
    if (this.#characters > this.#mostCharacters)
      throw this.#broken('the row is too long; is a quote not closed?', this.#firstLine);
    this.#field += text;
  }

  #endField(): void {
    this.#fields.push(this.#where === 'start' ? null : this.#field);
    this.#field = '';
    this.#where = 'start';
  }

  #endRow(): void {
    this.#endField();
    this.#rows.push({ line: this.#firstLine, fields: this.#fields });
    this.#fields = [];
    this.#characters = 0;
  }

  #taken(): readonly CsvRow[] {
    const rows = this.#rows;
    this.#rows = [];
    return rows;
  }

  #broken(message: string, line: number): BrokenText {
    return new BrokenText(line, message);
  }
}
