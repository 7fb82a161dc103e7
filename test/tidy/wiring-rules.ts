/**
 * The wiring creates the drivers and passes each domain its dependencies. Code with behaviour, which needs a
 * test, belongs to a domain, an edge or a driver: so the wiring is short, and has no class and no test.
 */
import { type Finding, findAll, isTest, type SourceFile } from './source-files.ts';

const WIRING = /^server\/cloud\/.*\.ts$/;
/** Lines of all its files. It may fall, never rise. */
const MOST_LINES = 1400;

export function checkWiring(files: readonly SourceFile[], mostLines = MOST_LINES): Finding[] {
  const wiring = files.filter(({ path }) => WIRING.test(path));
  const lines = wiring.reduce((sum, { text }) => sum + text.split('\n').length - 1, 0);
  const largest = wiring.toSorted((a, b) => b.text.length - a.text.length)[0]?.path ?? '';
  return [
    ...wiring.flatMap((file) =>
      findAll(
        file,
        /^(?:export )?(?:abstract )?class /gm,
        'the wiring has no classes: move it to its domain',
      ),
    ),
    ...wiring
      .filter(({ path }) => isTest(path))
      .map(({ path }) => ({ path, line: 1, message: 'code that wants a test belongs to its domain' })),
    ...(lines <= mostLines
      ? []
      : [
          {
            path: largest,
            line: 1,
            message: `the wiring has ${lines} lines, at most ${mostLines}: move what behaves to its domain`,
          },
        ]),
  ];
}
