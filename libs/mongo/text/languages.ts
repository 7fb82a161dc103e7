/** Words of a text as indexed: lower-case stems, without stop words and accents. */
import { createRequire } from 'node:module';
import { CommandError } from '../command-error.ts';
import { spend } from '../command-time.ts';
import { normalForm } from '../values/normal-forms.ts';

const require = createRequire(import.meta.url);

/** Languages of a server's text indexes, by both of their names. */
const LANGUAGES: Readonly<Record<string, string>> = {
  da: 'danish',
  nl: 'dutch',
  en: 'english',
  fi: 'finnish',
  fr: 'french',
  de: 'german',
  hu: 'hungarian',
  it: 'italian',
  nb: 'norwegian',
  pt: 'portuguese',
  ro: 'romanian',
  ru: 'russian',
  es: 'spanish',
  sv: 'swedish',
  tr: 'turkish',
};
const NAMES = new Set(Object.values(LANGUAGES));
/** Stop words of a server that are missing in the lists. */
const MORE_STOP_WORDS: Readonly<Record<string, readonly string[]>> = { english: ['a'], romanian: ['si'] };
/** Longer words are truncated, because stemmers are slow with them. */
const MAX_WORD = 128;
const WORD_STEPS = 10;
const WORDS = /[\p{L}\p{N}\p{M}_]+(?:['’]\p{L}+)*/gu;

interface Language {
  stem(word: string): string;
  isStopWord(word: string): boolean;
}

const NONE: Language = { stem: (word) => word, isStopWord: () => false };
/** Loaded when they are first used. */
const loaded = new Map<string, Language>([['none', NONE]]);

/** The full name of a language. Throws CommandError if unknown. */
export function languageName(given: unknown): string {
  const name = String(given).toLowerCase();
  const whole = Object.hasOwn(LANGUAGES, name) ? (LANGUAGES[name] as string) : name;
  if (NAMES.has(whole) || whole === 'none') return whole;
  throw new CommandError('BadValue', `unsupported language: "${name}" for text index`);
}

function languageOf(name: string): Language {
  const there = loaded.get(name);
  if (there !== undefined) return there;
  const { stopwords } = require(`@orama/stopwords/${name}`);
  const stops = new Set<string>([...stopwords, ...(MORE_STOP_WORDS[name] ?? [])]);
  const language = {
    stem: require(`@orama/stemmers/${name}`).stemmer,
    isStopWord: (word: string) => stops.has(word),
  };
  loaded.set(name, language);
  return language;
}

export interface Sensitivity {
  readonly toCase: boolean;
  readonly toAccents: boolean;
}

export const INSENSITIVE: Sensitivity = { toCase: false, toAccents: false };

/** The terms of a text, one per word that is not a stop word. */
export function* termsOf(text: string, language: string, sensitivity = INSENSITIVE): Generator<string> {
  const { stem, isStopWord } = languageOf(language);
  for (const [found] of text.matchAll(WORDS)) {
    spend(WORD_STEPS);
    const word = found.slice(0, MAX_WORD);
    const small = word.toLowerCase();
    if (isStopWord(small)) continue;
    const root = stem(small);
    // A stem that begins like its word keeps the case.
    const cased = !sensitivity.toCase ? root : small.startsWith(root) ? word.slice(0, root.length) : word;
    yield sensitivity.toAccents ? cased : withoutAccents(cased);
  }
}

export function withoutAccents(text: string): string {
  return normalForm(text, 'NFD').replace(/\p{M}/gu, '');
}
