/** Upper bound of the run time of a regular expression, derived from its pattern. */

export interface RegexCost {
  /** Its steps on a text of n characters are at most `factor` × (n + 1) ^ `degree`. */
  readonly degree: number;
  readonly factor: number;
}

const QUANTIFIER = /(?:([*+])|(\?)|\{(\d+)(?:(,)(\d*))?\})\??/y;
/** One character, or an escape for one. Anything else may be repeated with its content, or cannot be. */
const ATOM = /(\\[1-9]|\\k)|\\.|\[(?:\\.|[^\]\\])*\]|[^()|^$]/suy;

/** Infinite if no polynomial of the text's length bounds it: a repeated group may match in many ways. */
export function costOf(pattern: string, options: string): RegexCost {
  const isAnchored = /^\^[^|]*$/s.test(pattern) && !options.includes('m');
  let degree = isAnchored ? 0 : 1;
  let factor = 1;
  for (let at = 0; at < pattern.length; ) {
    const isGroupEnd = pattern[at] === ')';
    const [atom, reference] = isGroupEnd ? [')'] : (matchAt(ATOM, pattern, at) ?? []);
    if (atom === undefined) {
      if (pattern[at] === '|') factor *= 2;
      at++;
      continue;
    }
    if (reference !== undefined) degree++;
    at += atom.length;
    const found = matchAt(QUANTIFIER, pattern, at);
    if (found === null) continue;
    at += found[0].length;
    const [, isEndless, isOptional, least = '0', isRange, most] = found;
    const times = isOptional ? 1 : Number(most || least);
    const isOpen = isEndless !== undefined || (isRange !== undefined && most === '');
    if (isGroupEnd && (isOpen || times > 1)) return { degree: Number.POSITIVE_INFINITY, factor };
    if (isOpen) degree++;
    factor *= times + 1;
  }
  return { degree, factor };
}

function matchAt(regex: RegExp, text: string, at: number): RegExpExecArray | null {
  regex.lastIndex = at;
  return regex.exec(text);
}
