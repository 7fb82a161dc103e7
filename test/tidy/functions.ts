/** Finds the functions of a file: name, length and number of positional parameters. */
import { stripTypeScriptTypes } from 'node:module';
import { readCode } from './code-text.ts';
import { lineAt } from './source-files.ts';

export interface FunctionShape {
  /** As declared or assigned; `<anonymous>` for a callback. */
  readonly name: string;
  readonly line: number;
  /** From the parameter list to the end of the body; 1 when the body is an expression without brackets. */
  readonly lines: number;
  readonly parameters: number;
  /** The callback of `describe` or `suite`: a container of tests, not a piece of logic. */
  readonly isSuite: boolean;
}

const NOT_FUNCTIONS = /(?<![.\w$#])(?:if|for|while|switch|catch|with|return|await)\s*$/;
const CLOSERS: Readonly<Record<string, string>> = { '(': ')', '{': '}', '[': ']' };

/** Index of the bracket that closes the one at `open`, or -1. */
function closing(code: string, open: number): number {
  const opener = code.charAt(open);
  const closer = CLOSERS[opener];
  let depth = 0;
  for (let at = open; at < code.length; at++) {
    const char = code.charAt(at);
    if (char === opener) depth++;
    if (char === closer && --depth === 0) return at;
  }
  return -1;
}

/** Commas at the top level separate parameters; a trailing one does not. */
function countParameters(list: string): number {
  if (list.trim() === '') return 0;
  let depth = 0;
  let commas = 0;
  for (const char of list.trim().replace(/,$/, '')) {
    if ('([{'.includes(char)) depth++;
    if (')]}'.includes(char)) depth--;
    if (char === ',' && depth === 0) commas++;
  }
  return commas + 1;
}

function nameBefore(code: string, open: number): string {
  const before = code.slice(Math.max(0, open - 160), open);
  const method = /([#\w$]+)\s*$/.exec(before)?.[1];
  if (method !== undefined && method !== 'function' && method !== 'async') return method;
  return /([#\w$]+)\s*[=:]\s*(?:async\s*)?(?:function\s*)?$/.exec(before)?.[1] ?? '<anonymous>';
}

function isSuiteCallback(code: string, open: number): boolean {
  const line = code.slice(code.lastIndexOf('\n', open) + 1, open);
  return /(?<![.\w])(?:describe|suite)\s*\(/.test(line);
}

/**
 * The types are blanked first, so that a return type cannot hide a body. JSX is not understood: `.tsx` is
 * read as it is.
 */
export function findFunctions(text: string): FunctionShape[] {
  const { code } = readCode(text);
  return [...code.matchAll(/\(/g)].flatMap(({ index: open }) => {
    const end = closing(code, open);
    if (end === -1 || NOT_FUNCTIONS.test(code.slice(Math.max(0, open - 40), open))) return [];
    const body = /^\s*(=>\s*)?([{(]?)/.exec(code.slice(end + 1));
    const isArrow = body?.[1] !== undefined;
    const bracket = body?.[2] ?? '';
    if (body === null || (!isArrow && bracket !== '{')) return [];
    const bodyStart = end + body[0].length;
    const bodyEnd = bracket === '' ? end : closing(code, bodyStart);
    const line = lineAt(code, open);
    return [
      {
        name: nameBefore(code, open),
        line,
        lines: bodyEnd === -1 ? 1 : lineAt(code, bodyEnd) - line + 1,
        parameters: countParameters(code.slice(open + 1, end)),
        isSuite: isSuiteCallback(code, open),
      },
    ];
  });
}

/** TypeScript → JavaScript with every index and line kept. */
export function withoutTypes(text: string): string {
  return stripTypeScriptTypes(text);
}
