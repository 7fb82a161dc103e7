/** Cuts text into JSON objects, piece after piece: a list of them, or one after another, as in JSON lines. */
import { BrokenText } from './csv-reader.ts';

export interface JsonRow {
  /** The line where it begins, from 1. */
  readonly line: number;
  readonly value: Readonly<Record<string, unknown>>;
  readonly characters: number;
}

type Revive = (key: string, value: unknown, context?: { source?: string }) => unknown;

const BLANK = /[\s,[\]]/;
/** Matches numbers that a reviver may change, and perhaps similar text. */
const SPECIAL = /\d{16}|\d[.eE]/;
/**
 * A reviver is called for each value, which takes 2 s for 4 MiB of them; without one, parsing takes 35 ms.
 */
const MOST_REVIVED = 50_000;

export class JsonReader {
  readonly #mostCharacters: number;
  readonly #revive: Revive;
  #text = '';
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  #values = 0;
  #line = 1;
  #firstLine = 1;
  /** Lists that are open, 0 or 1; 0 for objects one after another. */
  #lists = 0;
  #listLine = 1;

  /** `revive`: the reviver of JSON.parse(). */
  constructor({ mostCharacters, revive = exact }: { mostCharacters: number; revive?: Revive }) {
    this.#mostCharacters = mostCharacters;
    this.#revive = revive;
  }

  /** The objects that this piece completes. Throws BrokenText. */
  push(text: string): readonly JsonRow[] {
    const rows: JsonRow[] = [];
    let from = 0;
    for (let at = 0; at < text.length; at++) {
      const character = text[at] as string;
      if (character === '\n') this.#line++;
      if (this.#depth === 0) {
        if (character === '{') {
          this.#depth = 1;
          this.#values = 0;
          this.#firstLine = this.#line;
          from = at;
        } else if (!BLANK.test(character)) throw new BrokenText(this.#line, 'is not a JSON object');
        else if (character === '[' || character === ']') this.#list(character);
        continue;
      }
      this.#step(character);
      if (this.#depth > 0) continue;
      this.#add(text.slice(from, at + 1));
      const { length: characters } = this.#text;
      rows.push({ line: this.#firstLine, value: this.#parsed(), characters });
    }
    if (this.#depth > 0) this.#add(text.slice(from));
    return rows;
  }

  end(): readonly JsonRow[] {
    if (this.#depth > 0) throw new BrokenText(this.#firstLine, 'the object is not complete');
    if (this.#lists > 0) throw new BrokenText(this.#listLine, 'the array that begins here is not closed');
    return [];
  }

  /** Detects a file that was cut off between two objects. */
  #list(character: '[' | ']'): void {
    if (character === '[' && this.#lists === 0) this.#listLine = this.#line;
    this.#lists += character === '[' ? 1 : -1;
    if (this.#lists > 1) throw new BrokenText(this.#line, 'is a nested array instead of a JSON object');
    if (this.#lists < 0) throw new BrokenText(this.#line, 'closes an array that was not opened');
  }

  #step(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === '\\') this.#isEscaped = this.#isInText;
    else if (character === '"') this.#isInText = !this.#isInText;
    else if (this.#isInText) return;
    else if (character === ',') this.#values++;
    else if (character === '{' || character === '[') this.#depth++;
    else if (character === '}' || character === ']') this.#depth--;
  }

  #add(text: string): void {
    this.#text += text;
    if (this.#text.length > this.#mostCharacters)
      throw new BrokenText(this.#firstLine, 'the object is too large');
  }

  #parsed(): JsonRow['value'] {
    const text = this.#text;
    this.#text = '';
    const isSpecial = SPECIAL.test(text);
    if (isSpecial && this.#values > MOST_REVIVED)
      throw new BrokenText(this.#firstLine, `the object has more than ${MOST_REVIVED} values`);
    try {
      return isSpecial ? JSON.parse(text, this.#revive) : JSON.parse(text);
    } catch (error) {
      throw new BrokenText(this.#firstLine, (error as Error).message);
    }
  }
}

/** Integers that a number of JavaScript would round stay text. */
function exact(_key: string, value: unknown, { source }: { source?: string } = {}): unknown {
  const isRounded = typeof value === 'number' && !Number.isSafeInteger(value) && /^-?\d+$/.test(source ?? '');
  return isRounded ? source : value;
}

/** A number as Extended JSON of its text: `1.0` is not an integer, and 9007199254740993 is not rounded. */
export function typedNumber(
  _key: string,
  value: unknown,
  { source = '' }: { source?: string } = {},
): unknown {
  if (typeof value !== 'number') return value;
  if (/^-?\d+$/.test(source)) return Number.isSafeInteger(value) ? value : largeNumber(source);
  return Number.isInteger(value) ? { $numberDouble: source } : value;
}

const INT64 = 2n ** 63n;
/** Length with the sign. Longer numbers, of up to 4 million digits, are not converted to BigInt. */
const INT64_CHARACTERS = 20;

function largeNumber(digits: string): unknown {
  if (digits.length > INT64_CHARACTERS) return { $numberDouble: digits };
  const whole = BigInt(digits);
  return whole >= -INT64 && whole < INT64 ? { $numberLong: digits } : { $numberDouble: digits };
}
