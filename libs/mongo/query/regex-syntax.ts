/** Syntax of PCRE that JavaScript lacks. */

const ENDS: Readonly<Record<string, string>> = { '\\z': '(?![^])', '\\Z': '(?=\\n?(?![^]))' };

/** `\Q…\E` as escaped characters. */
export function withoutQuotes(pattern: string): string {
  if (!pattern.includes('\\Q')) return pattern;
  return pattern.replace(/\\Q(.*?)(?:\\E|$)|\\./gs, (all, quoted: string | undefined) =>
    quoted === undefined ? all : quoted.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&'),
  );
}

/** The pattern for JavaScript: `\A`, `\z` and `\Z` match the ends of the text, also in line mode (`m`). */
export function asJavaScript(pattern: string, flags: string): string {
  const start = flags.includes('m') ? '(?<![^])' : '^';
  return withoutQuotes(pattern).replace(/\\.|\[(?:\\.|[^\]\\])*\]/gs, (all) =>
    all === '\\A' ? start : (ENDS[all] ?? all),
  );
}
