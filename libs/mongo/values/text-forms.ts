/**
 * One form for all texts that a collator considers equal, used for keys of indexes, sets and equality. A text
 * is split into letters with their marks, and each becomes the plainest letter that the collator considers
 * equal: `É` and `e` have one form if neither case nor accents count, and `ø` and `o` have two in Danish.
 * Letters that stand for two, such as `ß` and `æ`, become those two letters.
 */
import { spend } from '../command-time.ts';
import { normalForm } from './normal-forms.ts';

/** Cached, because most texts are short. */
const MAX_FORMS = 10_000;
/** Letters have at most as many marks as a normal form allows, so none is long. */
const LETTERS = /\P{M}\p{M}{0,31}|\p{M}{1,31}/gu;
const LOWER = 'abcdefghijklmnopqrstuvwxyz';
const SINGLES = [...LOWER, ...LOWER.toUpperCase(), ...'0123456789'];
const PAIRS = [...LOWER].flatMap((one) => [...LOWER].map((other) => one + other));
/** Ranges of Latin beyond ASCII, Greek, Cyrillic, Hebrew and hiragana. */
const OTHERS = ['\u00e0\u017f', '\u03ac\u03ce', '\u0430\u045f', '\u05d0\u05ea', '\u3041\u3096'];
/** Base letters, the plainest first. */
const PLAIN = [...SINGLES, ...PAIRS, ...OTHERS.flatMap(lettersBetween)];

function lettersBetween(ends: string): string[] {
  const [first, last] = [ends.charCodeAt(0), ends.charCodeAt(1)];
  return Array.from({ length: last - first + 1 }, (_, i) => String.fromCharCode(first + i));
}

export class TextForms {
  readonly #collator: Intl.Collator;
  readonly #isNumeric: boolean;
  readonly #forms = new Map<string, string>();
  /** PLAIN sorted by the collator; equal ones keep their order. */
  #plain: string[] | null = null;

  /** `isNumeric`: numbers within texts count by their value. */
  constructor(collator: Intl.Collator, { isNumeric }: { isNumeric: boolean }) {
    this.#collator = collator;
    this.#isNumeric = isNumeric;
  }

  formOf(text: string): string {
    const form = this.#join(normalForm(text, 'NFC'));
    return this.#isNumeric ? form.replace(/(?<!\d)0+(?=\d)/g, '') : form;
  }

  #join(text: string): string {
    let form = '';
    spend(text.length);
    for (const letter of text.match(LETTERS) ?? []) form += this.#formOfLetter(letter);
    return form;
  }

  #formOfLetter(letter: string): string {
    const kept = this.#forms.get(letter);
    if (kept !== undefined) return kept;
    const form = this.#find(letter);
    if (this.#forms.size >= MAX_FORMS) this.#forms.clear();
    this.#forms.set(letter, form);
    return form;
  }

  #find(letter: string): string {
    if (this.#isSame(letter, '')) return '';
    const plain = this.#amongPlain(letter);
    if (plain !== undefined) return plain;
    const same = candidatesFor(letter, this.#collator.resolvedOptions().locale).find((each) =>
      this.#isSame(letter, each),
    );
    if (same === undefined || same === letter) return letter;
    // A form of several letters is simplified letter by letter.
    return same.match(LETTERS)?.length === 1 ? (this.#amongPlain(same) ?? same) : this.#join(same);
  }

  #isSame(one: string, other: string): boolean {
    return this.#collator.compare(one, other) === 0;
  }

  #amongPlain(letter: string): string | undefined {
    this.#plain ??= PLAIN.toSorted(this.#collator.compare);
    const list = this.#plain;
    let [low, high] = [0, list.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#collator.compare(list[middle] as string, letter) < 0) low = middle + 1;
      else high = middle;
    }
    const found = list[low];
    if (found === undefined || !this.#isSame(found, letter)) return undefined;
    return found.length === 1 ? found : [...found].map((each) => this.#amongPlain(each) ?? each).join('');
  }
}

/** Texts that equal a letter under a collation, the simplest first. */
function candidatesFor(letter: string, locale: string): string[] {
  const parts = normalForm(letter, 'NFKD');
  const bare = parts.replace(/\p{M}/gu, '');
  const lower = (text: string) => text.toUpperCase().toLowerCase();
  const all = [lower(bare), bare, lower(parts), letter.toLocaleLowerCase(locale), parts, letter];
  return all.map((each) => normalForm(each, 'NFC'));
}
