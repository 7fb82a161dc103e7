/**
 * Collations of another host: names of locales differ by operating system, and each host has those that
 * were installed. They decide the order of texts and no row, so the nearest one is used instead.
 */
import type { Refused } from './refused-statements.ts';
import type { ServerFacts } from './server-facts-store.ts';
import { outsideTexts, pattern, plainName } from './sql-names.ts';

const COLLATE = new RegExp(pattern(' COLLATE (?:(ID)\\.)?(ID)').source, 'gi');
const CREATES = /^CREATE\b/i;
const MADE = pattern('^CREATE COLLATION (?:IF NOT EXISTS )?((?:ID\\.)?ID) \\(([\\s\\S]*)\\)\\s*;?$');
const LOCALE = /\b(?:locale|lc_collate)\s*=\s*'((?:[^']|'')+)'/i;
const OF_LIBRARY = /\bprovider\s*=\s*'?(?:icu|builtin)\b/i;
/** `de_DE.utf8`, `de_DE@euro`, `German_Germany.1252`. */
const NAME = /^([A-Za-z]+)(?:[_-]([A-Za-z ]+))?(?:\.[\w-]+)?(?:@\w+)?$/;
/** A name that only locales have. */
const LOCALE_NAME = /^[A-Za-z]+_[A-Z][A-Za-z ]*(?:\.[\w-]+)?(?:@\w+)?$/;
/** For a collation of the dump whose language is not known. */
const ANY = ['und-x-icu', 'C.utf8', 'C'];

/** The statement with collations that this server has; null: it has them all. */
export function withCollations(text: string, { collations }: ServerFacts): Refused | null {
  if (!CREATES.test(text)) return null;
  return made(text, collations) ?? used(text, collations);
}

function made(text: string, collations: ReadonlySet<string>): Refused | null {
  const [, name, options = ''] = MADE.exec(text) ?? [];
  const locale = LOCALE.exec(options)?.[1]?.replaceAll("''", "'");
  if (name === undefined || locale === undefined || OF_LIBRARY.test(options)) return null;
  if (isKnown(locale, collations)) return null;
  const near = nearest(locale, collations) ?? ANY.find((each) => collations.has(each)) ?? 'C';
  return {
    reason: `this server has no locale ${locale}; ${instead(near)}`,
    instead: `CREATE COLLATION ${name} FROM pg_catalog.${quoted(near)};`,
  };
}

function used(text: string, collations: ReadonlySet<string>): Refused | null {
  if (!/\bCOLLATE\b/i.test(text)) return null;
  const absent = new Map<string, string | undefined>();
  const replaced = (clause: string, schema: string | undefined, quotedName: string) => {
    const name = plainName(quotedName);
    // Without a schema it may be one of the dump.
    const isOther = schema === undefined ? !LOCALE_NAME.test(name) : plainName(schema) !== 'pg_catalog';
    if (isOther || collations.has(name)) return clause;
    const near = nearest(name, collations);
    absent.set(name, near);
    return near === undefined ? '' : ` COLLATE pg_catalog.${quoted(near)}`;
  };
  const changed = outsideTexts(text, (part) => part.replaceAll(COLLATE, replaced));
  if (absent.size === 0) return null;
  const reasons = [...absent].map(([name, near]) => `this server has no collation ${name}; ${instead(near)}`);
  return { reason: reasons.join('; '), instead: changed };
}

const quoted = (name: string) => `"${name}"`;
const instead = (near: string | undefined) =>
  near === undefined ? 'texts have the default order' : `the nearest is ${near}`;

/** Names of one locale differ by case and dashes: `de_DE.utf8`, `de_DE.UTF-8`. */
const folded = (name: string) => name.toLowerCase().replaceAll('-', '');

/** Names by their folded form. Made once: a dump may name thousands of others. */
const foldedNames = new WeakMap<ReadonlySet<string>, ReadonlyMap<string, readonly string[]>>();

function alike(locale: string, collations: ReadonlySet<string>): readonly string[] {
  const known = foldedNames.get(collations) ?? Map.groupBy(collations, folded);
  foldedNames.set(collations, known);
  return known.get(folded(locale)) ?? [];
}

function isKnown(locale: string, collations: ReadonlySet<string>): boolean {
  return collations.has(locale) || alike(locale, collations).length > 0;
}

function nearest(locale: string, collations: ReadonlySet<string>): string | undefined {
  const [, language = '', country = ''] = NAME.exec(locale) ?? [];
  const names = [
    ...alike(locale, collations),
    `${language.toLowerCase()}-${country.toUpperCase()}-x-icu`,
    `${language.toLowerCase()}-x-icu`,
  ];
  return names.find((name) => collations.has(name));
}
