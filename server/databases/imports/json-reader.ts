/** Cuts text into JSON objects, piece after piece: a list of them, or one after another, as in JSON lines. */
import { BrokenText } from './csv-reader.ts';

export interface JsonRow {
  /** Line of the text in which it begins, from 1. */
  readonly line: number;
  readonly value: Readonly<Record<string, unknown>>;
  readonly characters: number;
}

type Revive = (key: string, value: unknown, context?: { source?: string }) => unknown;

const BLANK = /[\s,[\]]/;

export class JsonReader {
  readonly #mostCharacters: number;
  readonly #revive: Revive;
  #text = '';
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  #line = 1;
  #firstLine = 1;

  /** `revive`: as of JSON.parse(). */
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
          this.#firstLine = this.#line;
          from = at;
        } else if (!BLANK.test(character)) throw new BrokenText(this.#line, 'is not a JSON object');
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
    return [];
  }

  #step(character: string): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (character === '\\') this.#isEscaped = this.#isInText;
    else if (character === '"') this.#isInText = !this.#isInText;
    else if (this.#isInText) return;
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
    try {
      return JSON.parse(text, this.#revive);
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

/** A number as Extended JSON of its text: `1.0` is no integer, and 9007199254740993 is not rounded. */
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

function largeNumber(digits: string): unknown {
  const whole = BigInt(digits);
  return whole >= -INT64 && whole < INT64 ? { $numberLong: digits } : { $numberDouble: digits };
}
