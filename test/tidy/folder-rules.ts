/** The number of files in one folder: a folder with subfolders by subject shows its plan. */
import { posix } from 'node:path';
import type { Finding, SourceFile } from './source-files.ts';

const MOST_FILES = 20;

/** Folders that may be larger, with the reason. */
const MAY_BE_LARGER: Readonly<Record<string, string>> = {
  'server/metadata/migrations': 'a list by number that only grows',
  'server/metadata/migrations/postgresql': 'a list by number that only grows',
  'server/testing': 'a flat list of fixtures for tests',
};

/** Folders of server/, cli/ and console/ with more than 20 files, not counting tests. */
export function checkFolderSizes(files: readonly SourceFile[]): Finding[] {
  const counted = files.filter(
    ({ path }) => /^(?:server|cli|console)\//.test(path) && !/\.test\.tsx?$/.test(path),
  );
  const folders = Map.groupBy(counted, ({ path }) => posix.dirname(path));
  return [...folders].flatMap(([folder, { length }]) => {
    if (length <= MOST_FILES || MAY_BE_LARGER[folder] !== undefined) return [];
    const message = `${length} files in one folder, at most ${MOST_FILES}: move those of one subject into a subfolder`;
    return [{ path: folder, line: 1, message }];
  });
}
