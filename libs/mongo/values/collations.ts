/**
 * Collations: the order of texts in a language, and which texts are equal without regard to case or
 * accents. The order is that of Intl.Collator, which compares two texts and has no sort keys.
 */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { isDocument } from './field-paths.ts';
import { isNumber, plainNumber } from './numbers.ts';
import { TextForms } from './text-forms.ts';

/** Equality of texts may differ between versions of ICU; keys belong to one of them. */
export const COLLATION_VERSION = process.versions.icu ?? 'none';

const bad = (message: string) => new CommandError('BadValue', message);

/** Valid values of each option, besides the supported ones. */
const CHOICES: Readonly<Record<string, readonly unknown[]>> = {
  caseLevel: [false, true],
  caseFirst: ['off', 'upper', 'lower'],
  strength: [1, 2, 3],
  numericOrdering: [false, true],
  alternate: ['non-ignorable', 'shifted'],
  maxVariable: ['punct'],
  normalization: [false, true],
  backwards: [false],
};
const SENSITIVITY = { 1: 'base', 2: 'accent', 3: 'variant' } as const;
/** ICU names of language-specific orders that Intl names differently. */
const ORDERS: Readonly<Record<string, string>> = {
  phonebook: 'phonebk',
  traditional: 'trad',
  dictionary: 'dict',
  gb2312han: 'gb2312',
};

export class Collation {
  /** All options, returned by `listIndexes`. */
  readonly spec: Readonly<Document>;
  /** Equal for equal collations, regardless of the ICU version. */
  readonly name: string;
  readonly #collator: Intl.Collator;
  readonly #forms: TextForms;

  /** `locale` and options from readCollation(); `collator` implements the order. */
  constructor(options: Document, collator: Intl.Collator) {
    const { caseFirst, ignorePunctuation } = collator.resolvedOptions();
    this.spec = {
      locale: options.locale,
      caseLevel: options.caseLevel ?? false,
      caseFirst: caseFirst === 'false' ? 'off' : caseFirst,
      strength: options.strength ?? 3,
      numericOrdering: options.numericOrdering ?? false,
      alternate: ignorePunctuation ? 'shifted' : 'non-ignorable',
      maxVariable: 'punct',
      normalization: options.normalization ?? false,
      backwards: false,
      version: COLLATION_VERSION,
    };
    this.name = JSON.stringify({ ...this.spec, version: null });
    this.#collator = collator;
    this.#forms = new TextForms(collator, { isNumeric: this.spec.numericOrdering });
  }

  /** Below 0: `a` comes before `b`. */
  compare(a: string, b: string): number {
    return this.#collator.compare(a, b);
  }

  /** Equal exactly for texts that are equal in this collation. */
  formOf(text: string): string {
    return this.#forms.formOf(text);
  }
}

/** Collators are expensive to create, and a client uses few. */
const known = new Map<string, Collation>();
const MAX_KNOWN = 50;

/** The collation named by a command, an index or a collection; null: texts are compared by bytes. */
export function readCollation(given: unknown): Collation | null {
  if (given === undefined || given === null) return null;
  if (!isDocument(given))
    throw new CommandError(
      'TypeMismatch',
      "BSON field 'collation' is the wrong type, expected type 'object'",
    );
  const { version: _version, ...asked } = given;
  const options = Object.fromEntries(
    Object.entries(asked).map(([name, value]) => [name, optionOf(name, value)]),
  );
  if (options.locale === undefined)
    throw new CommandError(40414, "BSON field 'collation.locale' is missing but a required field");
  if (options.locale === 'simple') return null;
  const key = JSON.stringify(options);
  const there = known.get(key);
  if (there !== undefined) return there;
  const collation = new Collation(options, collatorOf(options));
  if (known.size >= MAX_KNOWN) known.clear();
  known.set(key, collation);
  return collation;
}

export function isSameCollation(one: Collation | null, other: Collation | null): boolean {
  return one?.name === other?.name;
}

function optionOf(name: string, value: unknown): unknown {
  if (name === 'locale') {
    if (typeof value === 'string') return value;
    throw new CommandError('TypeMismatch', "BSON field 'collation.locale' must be of type string");
  }
  const choices = Object.hasOwn(CHOICES, name) ? CHOICES[name] : undefined;
  if (choices === undefined)
    throw new CommandError(40415, `BSON field 'collation.${name}' is an unknown field.`);
  const plain = isNumber(value) ? plainNumber(value) : value;
  if (choices.includes(plain)) return plain;
  throw bad(
    `collation.${name}: ${JSON.stringify(plain)} is not supported by this engine; it has ${choices.map((choice) => JSON.stringify(choice)).join(', ')}`,
  );
}

/** Throws CommandError for an unknown language, and for options that only ICU itself supports. */
function collatorOf(options: Document): Intl.Collator {
  const { locale, strength = 3, caseLevel = false, caseFirst, numericOrdering, alternate } = options;
  if (caseLevel && strength !== 1)
    throw bad('collation.caseLevel is supported by this engine with strength 1 only');
  const sensitivity = caseLevel ? 'case' : SENSITIVITY[strength as 1 | 2 | 3];
  return new Intl.Collator(tagOf(locale), {
    usage: 'sort',
    sensitivity,
    ...(caseFirst === undefined ? {} : { caseFirst: caseFirst === 'off' ? 'false' : caseFirst }),
    ...(alternate === undefined ? {} : { ignorePunctuation: alternate === 'shifted' }),
    numeric: numericOrdering ?? false,
  });
}

/** `de_AT@collation=phonebook` in Intl's syntax. */
function tagOf(locale: string): string {
  const [, name, order] = /^([A-Za-z]{2,3}(?:_[A-Za-z\d]+)*)(?:@collation=([a-z\d]+))?$/.exec(locale) ?? [];
  const collation = order === undefined ? undefined : (ORDERS[order] ?? order);
  const tag = name?.replaceAll('_', '-');
  if (tag !== undefined && isKnown(tag)) {
    const whole = collation === undefined ? tag : `${tag}-u-co-${collation}`;
    const { collation: found } = new Intl.Collator(whole).resolvedOptions();
    if (collation === undefined || found === collation) return whole;
  }
  const hint = locale.includes('-') ? `; did you mean '${locale.replaceAll('-', '_')}'?` : '';
  throw bad(`Field 'collation.locale' is invalid: '${locale}'${hint}`);
}

function isKnown(tag: string): boolean {
  try {
    return Intl.Collator.supportedLocalesOf([tag]).length > 0;
  } catch {
    return false;
  }
}
