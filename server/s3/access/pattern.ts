/**
 * Patterns of policies: `*` stands for any text, `?` for any character, `${name}` for what the request says.
 * Matching never goes back further than to the last `*`, so that no pattern can take long.
 */

/** A value of the request by its name; undefined: it has none. */
export type Variables = (name: string) => string | undefined;

/** Stands for `?` within a piece: keys and headers have no such character. */
const ANY_CHARACTER = '\0';

type Token = { readonly text: string } | { readonly variable: string } | '*';

export interface Pattern {
  readonly tokens: readonly Token[];
  readonly foldsCase: boolean;
}

const VARIABLE = /\$\{([^}]*)\}|\*|\?/g;
/** The characters themselves. */
const LITERALS = ['*', '?', '$'];

export interface PatternOptions {
  /** In documents of the version that has them. */
  readonly hasVariables?: boolean;
  /** Whether `*` and `?` mean more than themselves. Default: true. */
  readonly hasWildcards?: boolean;
  readonly foldsCase?: boolean;
}

export function readPattern(text: string, options: PatternOptions = {}): Pattern {
  const { hasVariables = false, hasWildcards = true, foldsCase = false } = options;
  const tokens: Token[] = [];
  let at = 0;
  const addText = (piece: string) => {
    const last = tokens.at(-1);
    if (piece === '') return;
    if (typeof last === 'object' && 'text' in last) tokens[tokens.length - 1] = { text: last.text + piece };
    else tokens.push({ text: piece });
  };
  for (const found of text.matchAll(VARIABLE)) {
    const [all, variable] = found;
    if (variable === undefined ? !hasWildcards : !hasVariables) continue;
    addText(text.slice(at, found.index));
    at = found.index + all.length;
    if (all === '?') addText(ANY_CHARACTER);
    else if (all === '*') tokens.push('*');
    else if (variable !== undefined && LITERALS.includes(variable)) addText(variable);
    else tokens.push({ variable: variable ?? '' });
  }
  addText(text.slice(at));
  return { tokens, foldsCase };
}

/** A variable that the request does not say matches nothing; `${name, 'text'}` is that text then. */
function variableValue(variable: string, variables: Variables): string | undefined {
  const [, name = variable, fallback] = /^([^,]*), *'([^']*)'$/.exec(variable) ?? [];
  return variables(name.trim().toLowerCase()) ?? fallback;
}

/** The pieces between the `*`; undefined: a variable has no value. */
function piecesOf(pattern: Pattern, variables: Variables): string[] | undefined {
  const pieces = [''];
  for (const token of pattern.tokens) {
    if (token === '*') pieces.push('');
    else {
      const text = 'text' in token ? token.text : variableValue(token.variable, variables);
      if (text === undefined) return undefined;
      pieces[pieces.length - 1] += text;
    }
  }
  return pattern.foldsCase ? pieces.map((piece) => piece.toLowerCase()) : pieces;
}

export function matches(pattern: Pattern, given: string, variables: Variables = () => undefined): boolean {
  const pieces = piecesOf(pattern, variables);
  if (pieces === undefined) return false;
  const text = pattern.foldsCase ? given.toLowerCase() : given;
  const [first = '', ...rest] = pieces;
  const last = rest.pop();
  if (last === undefined) return first.length === text.length && isAt(text, first, 0);
  if (first.length + last.length > text.length || !isAt(text, first, 0)) return false;
  const end = text.length - last.length;
  if (!isAt(text, last, end)) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = indexOf(text, piece, at);
    if (found < 0 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}

function isAt(text: string, piece: string, at: number): boolean {
  if (!piece.includes(ANY_CHARACTER)) return text.startsWith(piece, at);
  for (let i = 0; i < piece.length; i++) {
    if (piece[i] !== ANY_CHARACTER && piece[i] !== text[at + i]) return false;
  }
  return at + piece.length <= text.length;
}

function indexOf(text: string, piece: string, from: number): number {
  if (!piece.includes(ANY_CHARACTER)) return text.indexOf(piece, from);
  for (let at = from; at + piece.length <= text.length; at++) if (isAt(text, piece, at)) return at;
  return -1;
}
