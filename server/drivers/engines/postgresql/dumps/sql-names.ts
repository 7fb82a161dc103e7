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

export function namesIn(list: string): string[] {
  return [...list.matchAll(EACH)].map(([, name = '']) => name);
}
