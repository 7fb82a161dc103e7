/** Names the sources in a stack trace from built code. */
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CODE_FOLDER, ROOT } from '../program-files.ts';
import { originsIn, type Position } from './source-map.ts';

/** `file:///…/build/server/STAMP/cloud-1a2b.js:12:34` */
const PLACE = /(file:\/\/[^\s()]+\.js):(\d+):(\d+)/g;

/** Reading a map takes tens of milliseconds, so each code position is looked up once. */
const known = new Map<string, string>();

/**
 * The stack with `server/storage/objects/objects.ts:12:34` for each position in the running build.
 * A position without a map is kept. Maps are read only on demand: Node's --enable-source-maps reads
 * all at each start.
 */
export function withSourceFrames(stack: string): string {
  const places = [...stack.matchAll(PLACE)].filter(([place]) => !known.has(place));
  for (const [url, found] of Map.groupBy(places, ([, file = '']) => file)) {
    const positions = found.map(([, , line, column]) => ({ line: Number(line), column: Number(column) }));
    const origins = sourcesOf(url, positions);
    for (const [at, [place]] of found.entries()) known.set(place, origins[at] ?? place);
  }
  return stack.replaceAll(PLACE, (place) => known.get(place) ?? place);
}

function sourcesOf(url: string, positions: readonly Position[]): readonly (string | undefined)[] {
  try {
    const file = fileURLToPath(url);
    if (dirname(file) !== CODE_FOLDER) return [];
    const origins = originsIn(JSON.parse(readFileSync(`${file}.map`, 'utf8')), positions);
    return origins.map((origin) => {
      if (origin === undefined) return undefined;
      return `${relative(ROOT, join(dirname(file), origin.source))}:${origin.line}:${origin.column}`;
    });
  } catch {
    return [];
  }
}
