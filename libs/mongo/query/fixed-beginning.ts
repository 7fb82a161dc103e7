/** The literal prefix of all matches of a regular expression. */
import type { BSONRegExp } from 'bson';
import { withoutQuotes } from './regex-syntax.ts';

/** A literal character, escaped or not. Escaped letters and digits have a special meaning. */
const LITERAL = /\\([^a-zA-Z0-9\s])|([^\\^$.|?*+()[\]{}])/uy;
/** Marks that the preceding character is optional. */
const OPTIONAL = /[*?{]/y;

/** Null: no literal prefix, for example for case-insensitive or multi-line expressions. */
export function fixedBeginning({ pattern, options }: BSONRegExp): string | null {
  if (/[imx]/.test(options)) return null;
  const plain = withoutQuotes(pattern);
  const anchor = /^(?:\^|\\A)/.exec(plain)?.[0];
  if (anchor === undefined || hasAlternatives(plain)) return null;
  let beginning = '';
  for (let at = anchor.length; at < plain.length; ) {
    LITERAL.lastIndex = at;
    const found = LITERAL.exec(plain);
    if (found === null) break;
    at += found[0].length;
    OPTIONAL.lastIndex = at;
    if (OPTIONAL.test(plain)) break;
    beginning += found[1] ?? found[2];
  }
  return beginning === '' ? null : beginning;
}

/** Whether there is a `|` outside all groups. */
function hasAlternatives(pattern: string): boolean {
  let depth = 0;
  for (const [token] of pattern.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|./gsu)) {
    if (token === '(') depth++;
    if (token === ')') depth--;
    if (token === '|' && depth <= 0) return true;
  }
  return false;
}
