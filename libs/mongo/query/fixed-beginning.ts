/** The text that all matches of a regular expression begin with. */
import type { BSONRegExp } from 'bson';
import { withoutQuotes } from './regex-syntax.ts';

/** A character that stands for itself, escaped or not. Escapes of letters and digits have a meaning. */
const LITERAL = /\\([^a-zA-Z0-9\s])|([^\\^$.|?*+()[\]{}])/uy;
/** Marks that the character before it need not be there. */
const OPTIONAL = /[*?{]/y;

/** Null: there is none, as for an expression that looks at no case, or at each line. */
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

/** Whether there is a `|` outside of all groups. */
function hasAlternatives(pattern: string): boolean {
  let depth = 0;
  for (const [token] of pattern.matchAll(/\\.|\[(?:\\.|[^\]\\])*\]|./gsu)) {
    if (token === '(') depth++;
    if (token === ')') depth--;
    if (token === '|' && depth <= 0) return true;
  }
  return false;
}
