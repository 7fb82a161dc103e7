/** Names in statements of SQL. */

/** A name, quoted or not, as a part of a pattern. */
export const ID = '(?:"(?:[^"]|"")+"|[A-Za-z_\\x80-\\uffff][\\w$\\x80-\\uffff]*)';
/** Names of roles, between commas. */
const IDS = `(?:GROUP\\s+)?${ID}(?:\\s*,\\s*(?:GROUP\\s+)?${ID})*`;
const EACH = new RegExp(`(?:GROUP\\s+)?(${ID})`, 'gi');

/** A pattern with `ID` and `IDS`; a space matches any whitespace. */
export function pattern(text: string): RegExp {
  const whole = text
    .replaceAll('IDS', IDS)
    .replaceAll(/\bID\b/g, ID)
    .replaceAll(' ', '\\s+');
  return new RegExp(whole, 'i');
}

export function plainName(name: string): string {
  return name.startsWith('"') ? name.slice(1, -1).replaceAll('""', '"') : name.toLowerCase();
}

/** Names that a load remembers of each kind; a user chooses them. */
const MOST_NAMES = 100_000;

/** Adds the name if there are not too many. A part of a statement would keep all of it in memory. */
export function remember(names: Set<string>, name: string): void {
  if (names.size < MOST_NAMES) names.add(Buffer.from(name).toString());
}

export function namesIn(list: string): string[] {
  return [...list.matchAll(EACH)].map(([, name = '']) => name);
}

/**
 * Texts and quoted names. A dollar within a word begins none. One without its end reaches to the end of the
 * statement: a search from each beginning would be quadratic.
 */
const STRINGS =
  /'(?:[^']|'')*(?:'|$)|(?<![\w$\x80-\uffff])(\$(?:[A-Za-z_]\w*)?\$)[\s\S]*?(?:\1|$)|"(?:[^"]|"")*(?:"|$)/g;
const QUALIFIED = pattern(`(?:ID\\.)*ID`);

/** The statement with all its texts empty; quoted names stay. */
export function withoutTexts(statement: string): string {
  return statement.replaceAll(STRINGS, (found) => (found.startsWith('"') ? found : "''"));
}

/** The statement with everything but its texts changed. */
export function outsideTexts(statement: string, change: (part: string) => string): string {
  const changed: string[] = [];
  let at = 0;
  for (const { 0: found, index } of statement.matchAll(STRINGS)) {
    if (found.startsWith('"')) continue;
    changed.push(change(statement.slice(at, index)), found);
    at = index + found.length;
  }
  return changed.join('') + change(statement.slice(at));
}

/** All words and names of the statement, with their schemas: `public.things`. */
export function mentionsOf(statement: string): string[] {
  const all = withoutTexts(statement).matchAll(new RegExp(QUALIFIED.source, 'gi'));
  return [...all].map(([name]) => qualifiedName(name));
}

/** The name as the server compares it. */
export function qualifiedName(name: string): string {
  return [...name.matchAll(new RegExp(ID, 'gi'))].map(([part]) => plainName(part)).join('.');
}
