/** The files that a check reads: everything git tracks or would track. */
import { execFileSync } from 'node:child_process';
import { existsSync, lstatSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface SourceFile {
  /** From the root of the repository, with `/`. */
  readonly path: string;
  readonly text: string;
}

/** A finding of a check: the place, and what to do instead. */
export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly message: string;
}

/** Every tracked file and every untracked one that is not ignored; binary files and links are omitted. */
export function repositoryFiles(root: string): SourceFile[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  const paths = listed.split('\0').filter((path) => path !== '' && existsSync(join(root, path)));
  return paths
    .filter((path) => lstatSync(join(root, path)).isFile())
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
    .filter(({ text }) => !text.includes('\0'))
    .sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** The line, from 1, of the character at `index`. */
export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

export function isCode(path: string): boolean {
  return /\.(?:ts|tsx|js|mjs)$/.test(path) && !/\.gen\.ts$/.test(path);
}

/** A test, or a file that only tests use. */
export function isTest(path: string): boolean {
  return (
    /\.(?:test|conformance)\.tsx?$/.test(path) ||
    /^(?:test|bench|server\/testing|libs\/[a-z0-9-]+\/testing)\//.test(path)
  );
}

/** One finding per match of `pattern`, which has the `g` flag. */
export function findAll({ path, text }: SourceFile, pattern: RegExp, message: string): Finding[] {
  return [...text.matchAll(pattern)].map((match) => ({ path, line: lineAt(text, match.index), message }));
}
