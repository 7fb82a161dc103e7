/** Parts of a text that this SQLite cannot have: collations, functions and modules of other programs. */
import { NAME, type Token, tokensOf, unquoted } from './tokens.ts';

const COLLATIONS: ReadonlySet<string> = new Set(['binary', 'nocase', 'rtrim']);
const OF_SCHEMA = /^\s*CREATE\s/i;
const NO_FUNCTION = /^no such function: (.+)$/;
const NO_TABLE = /^no such table: (?:main\.)?(.+)$/;
const CREATED = new RegExp(
  String.raw`^\s*CREATE\s+(?:UNIQUE\s+)?(?:TEMP(?:ORARY)?\s+)?(INDEX|TRIGGER|VIEW)\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:main\s*\.\s*)?${NAME}`,
  'i',
);
/** Words before the name of a table in a view or trigger. */
const BEFORE_TABLE: ReadonlySet<string> = new Set(['from', 'join', 'into', 'update', 'in']);

export interface Changed {
  readonly text: string;
  readonly reason: string;
}

/** The statement without collations that are missing here; undefined: it names none. */
export function withoutCollations(text: string): Changed | undefined {
  if (!OF_SCHEMA.test(text) || !/\bCOLLATE\b/i.test(text)) return undefined;
  const missing = new Set<string>();
  let [changed, from] = ['', 0];
  let last: Token | undefined;
  for (const token of tokensOf(text)) {
    if (last?.text.toLowerCase() === 'collate' && token.name !== undefined && !COLLATIONS.has(token.name)) {
      missing.add(token.text);
      changed += text.slice(from, last.at);
      from = token.at + token.text.length;
    }
    last = token;
  }
  if (missing.size === 0) return undefined;
  const reason = `there is no collation ${[...missing].join(', ')} here; text is compared byte by byte instead`;
  return { text: changed + text.slice(from), reason };
}

/** The table without the checks that call the function that SQLite misses; undefined: there is none. */
export function withoutChecks(text: string, message: string): Changed | undefined {
  const name = NO_FUNCTION.exec(message)?.[1]?.toLowerCase();
  if (name === undefined || !/^\s*CREATE\s+(?:TEMP(?:ORARY)?\s+)?TABLE\s/i.test(text)) return undefined;
  let [changed, from, depth] = ['', 0, 0];
  let group: { readonly begin: number; readonly depth: number; calls: boolean } | undefined;
  let last: Token | undefined;
  for (const token of tokensOf(text)) {
    if (token.text === '(') {
      if (group === undefined && last?.text.toLowerCase() === 'check')
        group = { begin: token.at, depth, calls: false };
      depth++;
    } else if (token.text === ')') {
      depth--;
      if (group?.depth === depth) {
        if (group.calls) {
          changed += `${text.slice(from, group.begin)}(1)`;
          from = token.at + 1;
        }
        group = undefined;
      }
    } else if (group !== undefined && token.name === name) group.calls = true;
    last = token;
  }
  if (from === 0) return undefined;
  const reason = `there is no function ${name} here; the checks with it are left out`;
  return { text: changed + text.slice(from), reason };
}

/** An index, trigger or view. */
interface Dependent {
  readonly kind: string;
  readonly name: string;
}

export function dependentOf(text: string): Dependent | undefined {
  const [, kind = '', name] = CREATED.exec(text) ?? [];
  return name === undefined ? undefined : { kind: kind.toLowerCase(), name: unquoted(name) };
}

/** The first of the tables that a view or trigger reads or writes. */
export function usedBy(text: string, tables: ReadonlySet<string>): string | undefined {
  if (tables.size === 0) return undefined;
  let before = '';
  for (const { text: word, name } of tokensOf(text)) {
    if (name !== undefined && BEFORE_TABLE.has(before) && tables.has(name)) return name;
    before = word.toLowerCase();
  }
  return undefined;
}

/** Why an index cannot be created; undefined: for another reason than a missing function. */
export function whyNoIndex(text: string, message: string): string | undefined {
  const name = NO_FUNCTION.exec(message)?.[1];
  const isIndex = dependentOf(text)?.kind === 'index';
  return isIndex && name !== undefined ? `there is no function ${name} here` : undefined;
}

/** The table that a statement needs and that is not there. */
export const missingTable = (message: string): string | undefined =>
  NO_TABLE.exec(message)?.[1]?.toLowerCase();
