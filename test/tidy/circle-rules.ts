/** Folders of server/ and of its drivers/ import each other in one direction only. */
import { readImports } from './imports.ts';
import { type Finding, isCode, isTest, type SourceFile } from './source-files.ts';

function folderOf(path: string): string | undefined {
  return /^server\/((?:drivers\/(?:engines\/)?)?[^/]+)\//.exec(path)?.[1];
}

function arrowsOf(file: SourceFile) {
  const from = folderOf(file.path);
  return readImports(file).flatMap(({ target, line }) => {
    const to = target === undefined ? undefined : folderOf(target);
    return from === undefined || to === undefined || to === from ? [] : [{ from, to, path: file.path, line }];
  });
}

/** Imports that lead into a folder from which others lead back. */
export function checkCircles(files: readonly SourceFile[]): Finding[] {
  const arrows = files.filter(({ path }) => isCode(path) && !isTest(path)).flatMap(arrowsOf);
  const next = Map.groupBy(arrows, ({ from }) => from);
  const leads = (from: string, to: string) => {
    const seen = new Set([from]);
    for (const folder of seen) for (const arrow of next.get(folder) ?? []) seen.add(arrow.to);
    return seen.has(to);
  };
  return arrows
    .filter(({ from, to }) => leads(to, from))
    .map(({ from, to, path, line }) => ({ path, line, message: `${to}/ imports ${from}/ too, in the end` }));
}
