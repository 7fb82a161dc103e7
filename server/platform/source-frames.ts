/** Names the sources in the stack of an error that a build met. */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { CODE_FOLDER, ROOT } from './program-files.ts';

/** `file:///…/build/server/STAMP/cloud-1a2b.js:12:34` */
const PLACE = /file:\/\/[^\s()]+\.js:\d+:\d+/g;

/**
 * The stack with `server/storage/objects.ts:12:34` where it names a file of the build that runs. A place
 * without a map stays. Maps are read only now: Node's --enable-source-maps reads all of them at each start.
 */
export function withSourceFrames(stack: string): string {
  return stack.replaceAll(PLACE, (place) => {
    const [, url = '', line = '', column = ''] = /^(.*):(\d+):(\d+)$/.exec(place) ?? [];
    try {
      const file = fileURLToPath(url);
      if (dirname(file) !== CODE_FOLDER) return place;
      const map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')));
      const origin = map.findOrigin(Number(line), Number(column));
      if (!('fileName' in origin)) return place;
      const source = join(dirname(file), origin.fileName);
      return `${relative(ROOT, source)}:${origin.lineNumber}:${origin.columnNumber}`;
    } catch {
      return place;
    }
  });
}
