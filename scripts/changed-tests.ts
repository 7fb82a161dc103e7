/**
 * `npm test -- --changed`: the test files that a change reaches. Those are
 *
 * - each test file that imports a changed file, or one that imports it, and so on;
 * - of the acceptance and fault tests, which know a running cloud only: when the change is part of what runs,
 *   those of `npm test`, and those whose name begins with a word of the changed file's folder;
 * - all of `npm test` when a file changed that nothing imports and that is no page for people.
 */
import { spawnSync } from 'node:child_process';
import { mentionedFiles, readImports } from '../test/tidy/imports.ts';
import { isTest, type SourceFile } from '../test/tidy/source-files.ts';

export interface Change {
  /** The commit or branch of the comparison, for people. */
  readonly base: string;
  /** From the root, sorted. */
  readonly files: readonly string[];
}

/** Branches of this repository start here. */
const TRUNKS = ['main', 'origin/main'];

function git(root: string, ...args: readonly string[]): string[] | undefined {
  const { status, stdout } = spawnSync('git', args, { cwd: root, encoding: 'utf8' });
  return status === 0 ? stdout.split('\n').filter((line) => line !== '') : undefined;
}

/**
 * Files that differ from the point where this branch left main, or from the last commit on main; new ones
 * too.
 */
export function findChange(root: string): Change {
  const trunk = TRUNKS.find((name) => git(root, 'rev-parse', '--verify', '-q', name) !== undefined);
  const [commit = 'HEAD'] = (trunk && git(root, 'merge-base', 'HEAD', trunk)) || [];
  const changed = git(root, 'diff', '--name-only', '--no-renames', commit);
  const added = git(root, 'ls-files', '--others', '--exclude-standard');
  if (changed === undefined || added === undefined) throw new Error('--changed needs git and a clone');
  const name = trunk === undefined ? '' : `, where this branch left ${trunk}`;
  return { base: `${commit.slice(0, 8)}${name}`, files: [...new Set([...changed, ...added])].sort() };
}

/** Folders of the code, by the first word of their acceptance tests. */
const WORDS: Readonly<Record<string, string>> = {
  compute: 'vms',
  qemu: 'vms',
  guest: 'vms',
  engine: 'databases',
  managed: 'databases',
  blobs: 'storage',
};
const BLACK_BOX = /^test\/(?:acceptance|faults)\/([a-z0-9]+)/;
/** Files that a cloud or its users run. */
const PRODUCT = /^(?:server|libs|bin|console|cli|guest|sdk)\//;
const TEST = /\.test\.tsx?$/;
const PAGE = /(?:\.md|^LICENSE)$/;

/** `isQuick`: whether it is part of `npm test`. Returns those of `tests` that the change reaches. */
export function testsReached(
  { files: changed }: Pick<Change, 'files'>,
  {
    sources,
    tests,
    isQuick,
  }: {
    readonly sources: readonly SourceFile[];
    readonly tests: readonly string[];
    readonly isQuick: (file: string) => boolean;
  },
): string[] {
  const importers = importersOf(sources);
  const reached = new Set(changed);
  for (const file of reached) for (const importer of importers.get(file) ?? []) reached.add(importer);
  const unknown = changed.filter((file) => !importers.has(file) && !TEST.test(file) && !PAGE.test(file));
  const product = [...reached].filter((file) => PRODUCT.test(file) && !isTest(file));
  const words = new Set(
    changed
      .filter((file) => product.includes(file))
      .flatMap((file) => {
        const parts = file
          .split('/')
          .slice(0, -1)
          .flatMap((folder) => folder.split('-'));
        return parts.map((part) => WORDS[part] ?? part);
      }),
  );
  return tests.filter((file) => {
    if (reached.has(file) || (unknown.length > 0 && isQuick(file))) return true;
    const [, word] = BLACK_BOX.exec(file) ?? [];
    return word !== undefined && product.length > 0 && (isQuick(file) || words.has(word));
  });
}

/** For each file, those that import it or name it. */
function importersOf(sources: readonly SourceFile[]): Map<string, string[]> {
  const importers = new Map<string, string[]>();
  for (const source of sources) {
    const named = [...readImports(source).map(({ target }) => target), ...mentionedFiles(source)];
    for (const target of new Set(named)) {
      if (target === undefined) continue;
      importers.set(target, [...(importers.get(target) ?? []), source.path]);
    }
  }
  return importers;
}
