/** Indexes of texts: their terms, and the score of a document for a search. */
import type { Document } from 'bson';
import { CommandError } from '../command-error.ts';
import { spend } from '../command-time.ts';
import { isDocument, leavesAt } from '../values/field-paths.ts';
import { isNumber, isTrue, plainNumber } from '../values/numbers.ts';
import { INSENSITIVE, languageName, type Sensitivity, termsOf, withoutAccents } from './languages.ts';

const WILDCARD = '$**';
/** Same maximum as on a server. */
const MAX_WEIGHT = 99_999;
const MAX_TERMS = 400_000;
const MAX_TERMS_BYTES = 4 * 2 ** 20;
/** Approximate bytes of a server's key besides its term. */
const TERM_BYTES = 25;
/** Words and phrases of a search. */
const MAX_WANTED = 10_000;

/** The options of a text index, whose key names the fields. Throws CommandError. */
export function readTextSpec({ key: given, weights: asked = {}, ...spec }: Document): Document {
  // In a key from listIndexes, the text fields are only in the weights.
  const { _ftsx: _, ...key } = given;
  const weights: Document = {};
  for (const [path, kind] of Object.entries(key)) if (kind === 'text' && path !== '_fts') weights[path] = 1;
  for (const [path, weight] of Object.entries(asked)) {
    const number = isNumber(weight) ? plainNumber(weight) : 0;
    if (!(number >= 1 && number <= MAX_WEIGHT))
      throw new CommandError(
        'CannotCreateIndex',
        `text index weight must be in the interval [1, ${MAX_WEIGHT}]`,
      );
    weights[path] = number;
  }
  const plain = Object.entries(key).filter(([, kind]) => kind !== 'text');
  const at = Object.values(key).indexOf('text');
  const before = Object.keys(key).slice(0, at);
  const entries = [
    ...plain.filter(([path]) => before.includes(path)),
    ['_fts', 'text'] as const,
    ['_ftsx', 1] as const,
    ...plain.filter(([path]) => !before.includes(path)),
  ];
  const { default_language: language = 'english', language_override: override = 'language' } = spec;
  if (typeof override !== 'string')
    throw new CommandError('CannotCreateIndex', 'language_override must be a string');
  return {
    ...spec,
    key: Object.fromEntries(entries),
    weights: Object.fromEntries(Object.entries(weights).sort(([a], [b]) => (a < b ? -1 : 1))),
    default_language: languageName(language),
    language_override: override,
    textIndexVersion: 3,
  };
}

interface Field {
  readonly text: string;
  readonly weight: number;
}

interface Weights {
  readonly paths: readonly { readonly path: readonly string[]; readonly weight: number }[];
  readonly named: Document;
  /** Weight of all other texts; undefined: not indexed. */
  readonly all: number | undefined;
}

/** Cache by index specification. */
const known = new WeakMap<Document, Weights>();

function weightsOf(spec: Document): Weights {
  const there = known.get(spec);
  if (there !== undefined) return there;
  const { [WILDCARD]: all, ...named } = spec.weights as Record<string, number>;
  const paths = Object.entries(named).map(([path, weight]) => ({ path: path.split('.'), weight }));
  const weights = { paths, named, all };
  known.set(spec, weights);
  return weights;
}

function fieldsOf(document: Document, spec: Document): Field[] {
  const { paths, named, all } = weightsOf(spec);
  const fields: Field[] = [];
  spend(paths.length);
  for (const { path, weight } of paths) {
    if (document[path[0] as string] === undefined) continue;
    for (const text of leavesAt(document, path).flat())
      if (typeof text === 'string') fields.push({ text, weight });
  }
  if (all !== undefined)
    for (const text of everyText(document, '', named)) fields.push({ text, weight: all });
  return fields;
}

function* everyText(value: unknown, path: string, named: Document): Generator<string> {
  if (typeof value === 'string' && !Object.hasOwn(named, path)) yield value;
  if (Array.isArray(value)) for (const each of value) yield* everyText(each, path, named);
  if (!isDocument(value)) return;
  for (const [name, inner] of Object.entries(value))
    yield* everyText(inner, path === '' ? name : `${path}.${name}`, named);
}

function languageOf(
  document: Document,
  { default_language: fallback, language_override: field }: Document,
): string {
  const own = document[field];
  if (own === undefined) return fallback;
  if (typeof own === 'string') {
    try {
      return languageName(own);
    } catch {
      // Abbreviation used by a server for a document.
    }
  }
  throw new CommandError(17262, `language override unsupported: ${String(own)}`);
}

/** Each once. Throws CommandError for a document of an unknown language. */
export function indexTerms(document: Document, spec: Document): string[] {
  const fields = fieldsOf(document, spec);
  if (fields.length === 0) return [];
  const language = languageOf(document, spec);
  const terms = new Set<string>();
  let bytes = 0;
  for (const { text } of fields)
    for (const term of termsOf(text, language)) {
      if (terms.has(term)) continue;
      terms.add(term);
      bytes += term.length + TERM_BYTES;
      if (terms.size > MAX_TERMS)
        throw new CommandError(
          16732,
          `too many unique keys for a single document to have a text index, max is ${MAX_TERMS}`,
        );
      if (bytes > MAX_TERMS_BYTES)
        throw new CommandError(
          16733,
          `trying to index text where term list is too big, max is ${MAX_TERMS_BYTES / 2 ** 20}mb`,
        );
    }
  return [...terms];
}

/** A search by `$text`. */
export interface TextSearch {
  /** Index keys of which a matching document has at least one. */
  readonly terms: readonly string[];
  /** Relevance of a document; null: no match. */
  score(document: Document): number | null;
}

const OPTIONS = new Set(['$search', '$language', '$caseSensitive', '$diacriticSensitive']);

/** Throws CommandError if it is not a `$text` search. */
export function assertText(asked: unknown): asserts asked is Document {
  if (!isDocument(asked)) throw new CommandError('BadValue', '$text expects an object');
  if (typeof asked.$search !== 'string')
    throw new CommandError('TypeMismatch', '"$search" had the wrong type. Expected string');
  const unknown = Object.keys(asked).find((name) => !OPTIONS.has(name));
  if (unknown !== undefined) throw new CommandError('BadValue', `extra fields in $text: ${unknown}`);
  if (asked.$language !== undefined) languageName(asked.$language);
}

/** Throws CommandError. */
export function readSearch(asked: unknown, spec: Document): TextSearch {
  assertText(asked);
  const language = asked.$language === undefined ? spec.default_language : languageName(asked.$language);
  const sensitivity = {
    toCase: isTrue(asked.$caseSensitive ?? false),
    toAccents: isTrue(asked.$diacriticSensitive ?? false),
  };
  const [wanted, unwanted] = [[] as string[], [] as string[]];
  const phrases: { readonly text: string; readonly isWanted: boolean }[] = [];
  for (const [, minus, phrase, word = ''] of asked.$search.matchAll(
    /(?<=^|\s)(-?)(?:"([^"]*)"?|([^\s"]+))|"([^"]*)"?/g,
  )) {
    const text = phrase ?? word;
    if (phrase !== undefined) phrases.push({ text: formOf(text, sensitivity), isWanted: minus !== '-' });
    if (minus !== '-') wanted.push(text);
    else if (phrase === undefined) unwanted.push(text);
  }
  const terms = (texts: string[], how: Sensitivity) =>
    new Set(texts.flatMap((text) => [...termsOf(text, language, how)]));
  if (wanted.length + unwanted.length + phrases.length > MAX_WANTED)
    throw new CommandError('BadValue', `a search may have at most ${MAX_WANTED} words and phrases`);
  const positive = terms(wanted, sensitivity);
  const negative = terms(unwanted, sensitivity);
  return {
    terms: [...terms(wanted, INSENSITIVE)],
    score: (document) => {
      const fields = fieldsOf(document, spec);
      const texts = fields.map(({ text }) => formOf(text, sensitivity));
      const isIn = (phrase: string) =>
        texts.some((each) => {
          spend(each.length / 10);
          return each.includes(phrase);
        });
      if (phrases.some(({ text, isWanted }) => isIn(text) !== isWanted)) return null;
      return scoreOf(fields, { positive, negative, sensitivity, language: languageOf(document, spec) });
    },
  };
}

function formOf(text: string, { toCase, toAccents }: Sensitivity): string {
  const cased = toCase ? text : text.toLowerCase();
  return toAccents ? cased : withoutAccents(cased);
}

interface Scoring {
  readonly positive: ReadonlySet<string>;
  readonly negative: ReadonlySet<string>;
  readonly sensitivity: Sensitivity;
  readonly language: string;
}

/**
 * A term counts half as much for each repetition, more if it is a larger part of the field, and a
 * little more if it is the whole field: the formula of the server's text indexes of version 3.
 */
function scoreOf(
  fields: readonly Field[],
  { positive, negative, sensitivity, language }: Scoring,
): number | null {
  let [score, isFound] = [0, false];
  for (const { text, weight } of fields) {
    const found = new Map<string, { count: number; frequency: number }>();
    let words = 0;
    for (const term of termsOf(text, language, sensitivity)) {
      if (negative.has(term)) return null;
      words++;
      if (!positive.has(term)) continue;
      const { count, frequency } = found.get(term) ?? { count: 0, frequency: 0 };
      found.set(term, { count: count + 1, frequency: frequency + 0.5 ** count });
    }
    for (const [term, { count, frequency }] of found) {
      const part = (0.5 * count) / words + 0.5;
      score += weight * frequency * part * (text.toLowerCase() === term ? 1.1 : 1);
      isFound = true;
    }
  }
  return isFound ? score : null;
}
