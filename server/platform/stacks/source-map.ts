/**
 * Reads source maps (ECMA-426, version 3). Node's SourceMap first creates objects for all mappings,
 * which blocks the event loop for seconds with one of our files on a busy host. This one scans the
 * text.
 */

/** Both from 1, as in stacks. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

export interface Origin extends Position {
  /** The path in the map: relative to the map. */
  readonly source: string;
}

interface SourceMapText {
  readonly sources: readonly string[];
  readonly mappings: string;
}

const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const VALUE_OF = new Int8Array(128);
for (const [value, digit] of [...DIGITS].entries()) VALUE_OF[digit.charCodeAt(0)] = value;
const [COMMA, SEMICOLON] = [44, 59];

/** The source of each position: of the last mapping at or before it on its line. */
export function originsIn(
  { sources, mappings }: SourceMapText,
  positions: readonly Position[],
): (Origin | undefined)[] {
  const found: (Origin | undefined)[] = positions.map(() => undefined);
  // Column in the build, then source, line and column; all but the first continue across lines.
  const state = [0, 0, 0, 0];
  let [line, field, value, shift] = [1, 0, 0, 0];
  const lines = new Set(positions.map((position) => position.line));
  const last = Math.max(0, ...lines);
  // A mapping with one field begins a section without a source.
  const note = () => {
    if ((field !== 1 && field !== 4) || !lines.has(line)) return;
    const [built = 0, source = 0, sourceLine = 0, sourceColumn = 0] = state;
    const origin = { source: sources[source] ?? '', line: sourceLine + 1, column: sourceColumn + 1 };
    for (const [at, wanted] of positions.entries())
      if (wanted.line === line && built < wanted.column) found[at] = field === 4 ? origin : undefined;
  };
  for (let at = 0; at < mappings.length && line <= last; at++) {
    const code = mappings.charCodeAt(at);
    if (code === COMMA || code === SEMICOLON) {
      field = 0;
      if (code === COMMA) continue;
      line++;
      state[0] = 0;
      continue;
    }
    const digit = VALUE_OF[code] ?? 0;
    value |= (digit & 31) << shift;
    shift += 5;
    if ((digit & 32) !== 0) continue;
    // The lowest bit is the sign.
    if (field < 4) state[field] = (state[field] ?? 0) + (value & 1 ? -(value >>> 1) : value >>> 1);
    [value, shift] = [0, 0];
    field++;
    note();
  }
  return found;
}
