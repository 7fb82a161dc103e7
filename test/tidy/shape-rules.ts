/** Sizes: what fits on a screen can be read. */
import { readCode, type StringLiteral } from './code-text.ts';
import { findFunctions, withoutTypes } from './functions.ts';
import { type Finding, isCode, type SourceFile } from './source-files.ts';

const LIMITS = { functionLines: 70, parameters: 3, lineCharacters: 110 } as const;

/**
 * Longer than the limit today: `path#name` → lines. Lower or remove an entry as the function shrinks; add
 * none.
 */
const LONG_FUNCTIONS: Readonly<Record<string, number>> = {};

/**
 * Lines too wide to read, when it is code or comment that makes them so and not one long string or address.
 */
export function checkLineLength(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isCode(path))
    .flatMap(({ path, text }) => {
      const { strings } = readCode(text);
      const findings: Finding[] = [];
      let start = 0;
      for (const [row, line] of text.split('\n').entries()) {
        const end = start + line.length;
        if (line.length > LIMITS.lineCharacters && !/https?:\/\//.test(line)) {
          const span = { start, end };
          const width = line.length - strings.reduce((sum, literal) => sum + overlap(literal, span), 0);
          const message = `${line.length} characters, at most ${LIMITS.lineCharacters}`;
          if (width > LIMITS.lineCharacters) findings.push({ path, line: row + 1, message });
        }
        start = end + 1;
      }
      return findings;
    });
}

function overlap({ index, value }: StringLiteral, span: { start: number; end: number }): number {
  return Math.max(0, Math.min(index + value.length, span.end) - Math.max(index, span.start));
}

/**
 * Functions longer than LIMITS.functionLines; `allowed` is the ratchet, and an entry that is too generous is
 * a finding too.
 */
export function checkFunctionLength(
  files: readonly SourceFile[],
  allowed: Readonly<Record<string, number>> = LONG_FUNCTIONS,
): Finding[] {
  const used = new Set<string>();
  const findings = shapes(files).flatMap(({ path, shape }): Finding[] => {
    if (shape.lines <= LIMITS.functionLines || shape.isSuite) return [];
    const key = `${path}#${shape.name}`;
    const bound = allowed[key];
    used.add(key);
    if (bound === shape.lines) return [];
    const advice =
      bound !== undefined && bound > shape.lines
        ? `lower its entry in LONG_FUNCTIONS to ${shape.lines}`
        : `at most ${bound ?? LIMITS.functionLines}: name its parts`;
    return [{ path, line: shape.line, message: `${shape.name} has ${shape.lines} lines; ${advice}` }];
  });
  const stale = Object.keys(allowed).filter((key) => !used.has(key));
  const message = 'is no longer too long or no longer there: remove it from LONG_FUNCTIONS';
  return [...findings, ...stale.map((key) => ({ path: key, line: 1, message }))];
}

/** May take more parameters, and why. Add none. */
const MANY_PARAMETERS: Readonly<Record<string, string>> = {
  'server/config/setting-kinds.ts#text': 'one row of the table of settings',
  'server/config/setting-kinds.ts#integer': 'one row of the table of settings',
  'server/config/setting-kinds.ts#oneOf': 'one row of the table of settings',
  'test/harness/client.ts#upload': 'bucket, name and content read by themselves; the form fields are rare',
};

/**
 * Functions whose calls cannot be read because of their many positional arguments. Whoever calls a callback
 * decides on its.
 */
export function checkParameters(files: readonly SourceFile[]): Finding[] {
  return shapes(files).flatMap(({ path, shape }) => {
    const isCallback = shape.name === '<anonymous>';
    if (shape.parameters <= LIMITS.parameters || isCallback || `${path}#${shape.name}` in MANY_PARAMETERS) {
      return [];
    }
    const message = `${shape.name} takes ${shape.parameters} positional parameters, at most ${LIMITS.parameters}: take one object`;
    return [{ path, line: shape.line, message }];
  });
}

function shapes(files: readonly SourceFile[]) {
  return files
    .filter(({ path }) => isCode(path))
    .flatMap(({ path, text }) => {
      const source = path.endsWith('.ts') ? withoutTypes(text) : text;
      return findFunctions(source).map((shape) => ({ path, shape }));
    });
}
