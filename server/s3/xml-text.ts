/** Text inside XML documents. */

/**
 * Characters a parser would read otherwise than it was written, or not at all: markup, line ends, control
 * characters.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: keys may hold them
const UNSAFE = /[\u0000-\u001F&<>"\u007F-\u009F\uFFFE\uFFFF]/g;
const NAMED: ReadonlyMap<string, string> = new Map([
  ['&', '&amp;'],
  ['<', '&lt;'],
  ['>', '&gt;'],
  ['"', '&quot;'],
]);

/**
 * Escapes text for element content and double-quoted attributes. CR, LF and tab become references, so that no
 * parser turns them into something else; so do characters that XML 1.0 cannot say (`&#x1;`), as Amazon does.
 */
export function escapeXml(text: string): string {
  return text.replace(
    UNSAFE,
    (character) => NAMED.get(character) ?? `&#x${character.charCodeAt(0).toString(16).toUpperCase()};`,
  );
}
