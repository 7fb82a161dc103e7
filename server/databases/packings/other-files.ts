/** Recognizes, by the first bytes, files that are not dumps of the database's engine. */
import { type EngineName, LoadFailed } from '../engine.ts';
import type { EngineDescription } from '../engine-description.ts';
import { begin, withoutMark } from '../file-start.ts';

const HEAD_BYTES = 1024;

type About = Pick<EngineDescription, 'name' | 'title' | 'dumpBegins'>;

/** Files that people upload instead of a dump, and how they are recognized. */
const OTHERS: readonly (readonly [RegExp, string])[] = [
  [/^\s*<(?:!doctype html|html)\b/i, 'is a web page, not a dump: its address may require a login'],
  [/^version https:\/\/git-lfs\./, 'is a Git LFS pointer: download its content with `git lfs pull`'],
  [
    // A dump may follow: mysqldump goes on without tablespaces.
    /^(?:Error|pg_dump: error|mysqldump: Got error|mysqldump: Error|bash: )(?![\s\S]*\n-- (?:MySQL|MariaDB|PostgreSQL))/,
    'is the error message of a program, not a dump',
  ],
  [
    /^\s*(?:\[|\{)/,
    'is JSON, not a dump: import it into a table or collection (`POST …/rows/import`, or Import in the console)',
  ],
  [/^\s*<\?xml\b/, 'is XML, not a dump: make the dump without --xml'],
  [/^\xfebin/, 'is a binary log, not a dump'],
  [/^USE \[|^\s*\/\*{6} Object: /, 'is a script for SQL Server, which no engine here can load'],
];

/**
 * The pieces. Throws LoadFailed for a dump of another engine, with the engine to create a database of, and
 * for a file that is not a dump of any engine.
 */
export async function* ofEngine(
  engine: EngineName,
  pieces: AsyncIterable<Uint8Array>,
  abouts: readonly About[],
): AsyncGenerator<Uint8Array> {
  const { head, whole, close } = await begin(pieces, ({ length }) => length >= HEAD_BYTES);
  try {
    assertNoOther(engine, withoutMark(head).toString('latin1').replaceAll('\r', ''), abouts);
  } catch (error) {
    await close();
    throw error;
  }
  yield* whole;
}

function assertNoOther(engine: EngineName, head: string, abouts: readonly About[]): void {
  const own = abouts.find(({ name }) => name === engine);
  const maker = abouts.find(({ name, dumpBegins }) => name !== engine && dumpBegins?.test(head) === true);
  if (own !== undefined && maker !== undefined)
    throw new LoadFailed(
      `The file is a dump of ${maker.title}, and this is a ${own.title} database, which cannot load it: ` +
        `create a database of the engine ${maker.name}, and load it there`,
    );
  const what = OTHERS.find(([begins]) => begins.test(head))?.[1];
  if (what !== undefined) throw new LoadFailed(`The file ${what}`);
}
