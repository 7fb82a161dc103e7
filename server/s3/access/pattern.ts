/**
 * Patterns of policies: `*` matches any text, `?` any character, `${name}` a value of the request.
 * Matching backtracks only to the last `*`. The author of the policy may also send the request, so
 * the total effort of all patterns for a request is limited.
 */

/** A value of the request by name; undefined: missing. */
export type Variables = (name: string) => string | undefined;

export class TooMuchEffort extends Error {}

/**
 * Characters that may be compared for one request: 3 ms. A policy of 20 KiB that searches a name of 1 KiB for
 * 400 texts still fits.
 */
const MAX_STEPS = 500_000;

/** Remaining matching work that one request may cause. */
export class Effort {
  #steps: number;

  constructor(steps = MAX_STEPS) {
    this.#steps = steps;
  }

  /** Throws TooMuchEffort. */
  spend(steps: number): void {
    this.#steps -= steps;
    if (this.#steps < 0) throw new TooMuchEffort('the policy takes too long');
  }
}

/** The request that a pattern is matched against. */
export interface Asking {
  readonly variables: Variables;
  readonly effort: Effort;
}

/** Represents `?` within a piece: keys and headers cannot contain this character. */
const ANY_CHARACTER = '\0';
const ANY_CODE = 0;

type Token = { readonly text: string } | { readonly variable: string } | '*';

export interface Pattern {
  readonly tokens: readonly Token[];
  readonly foldsCase: boolean;
}

const VARIABLE = /\$\{([^}]*)\}|\*|\?/g;
/** The characters themselves. */
const LITERALS = ['*', '?', '$'];

export interface PatternOptions {
  /** In documents of the policy version that has variables. */
  readonly hasVariables?: boolean;
  /** Whether `*` and `?` are wildcards. Default: true. */
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

/** A variable that the request lacks matches nothing; `${name, 'text'}` uses the text then. */
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

export function matches(pattern: Pattern, given: string, { variables, effort }: Asking): boolean {
  effort.spend(1 + pattern.tokens.length);
  const pieces = piecesOf(pattern, variables);
  if (pieces === undefined) return false;
  if (pattern.foldsCase) effort.spend(given.length);
  const text = pattern.foldsCase ? given.toLowerCase() : given;
  const [first = '', ...rest] = pieces;
  const last = rest.pop();
  if (last === undefined) return first.length === text.length && isAt(text, first, { at: 0, effort });
  if (first.length + last.length > text.length || !isAt(text, first, { at: 0, effort })) return false;
  const end = text.length - last.length;
  if (!isAt(text, last, { at: end, effort })) return false;
  let at = first.length;
  for (const piece of rest) {
    while (!isAt(text, piece, { at, effort })) if (++at + piece.length > end) return false;
    at += piece.length;
    if (at > end) return false;
  }
  return true;
}

interface Place {
  readonly at: number;
  readonly effort: Effort;
}

function isAt(text: string, piece: string, { at, effort }: Place): boolean {
  if (at + piece.length > text.length) return false;
  let i = 0;
  for (; i < piece.length; i++) {
    const wanted = piece.charCodeAt(i);
    if (wanted !== ANY_CODE && wanted !== text.charCodeAt(at + i)) break;
  }
  effort.spend(1 + i);
  return i === piece.length;
}
