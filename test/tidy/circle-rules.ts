/** Folders of server/ and of its drivers/, and files, import each other in one direction only. */
import { type Import, readImports } from './imports.ts';
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

interface Arrow {
  readonly from: string;
  readonly to: string;
}

/** The arrows to a place from which others lead back. */
function inCircles<T extends Arrow>(arrows: readonly T[]): T[] {
  const left = trimmed(arrows);
  const next = Map.groupBy(left, ({ from }) => from);
  const leads = (from: string, to: string) => {
    const seen = new Set([from]);
    for (const place of seen) for (const arrow of next.get(place) ?? []) seen.add(arrow.to);
    return seen.has(to);
  };
  return left.filter(({ from, to }) => leads(to, from));
}

/**
 * Without the arrows that begin or end where no others end or begin: nodes outside circles soon disappear.
 */
function trimmed<T extends Arrow>(arrows: readonly T[]): readonly T[] {
  const starts = new Set(arrows.map(({ from }) => from));
  const ends = new Set(arrows.map(({ to }) => to));
  const left = arrows.filter(({ from, to }) => starts.has(to) && ends.has(from));
  return left.length === arrows.length ? left : trimmed(left);
}

/** Imports of a folder from which others lead back. */
export function checkCircles(files: readonly SourceFile[]): Finding[] {
  const arrows = files.filter(({ path }) => isCode(path) && !isTest(path)).flatMap(arrowsOf);
  return inCircles(arrows).map(({ from, to, path, line }) => {
    return { path, line, message: `${to}/ imports ${from}/ too, in the end` };
  });
}

/** Types do not exist at run time, and a dynamic import waits until it is called. */
function isRunTime({ clause }: Import): boolean {
  return clause !== '*' && !/^\s*type\s+[^,\s]/.test(clause);
}

/**
 * Imports between files that lead back to their start: the state of such a file when another one runs depends
 * on the first import.
 */
export function checkFileCircles(files: readonly SourceFile[]): Finding[] {
  const arrows = files
    .filter(({ path }) => isCode(path) && !isTest(path))
    .flatMap((file) =>
      readImports(file).flatMap((imported) => {
        const { target, line } = imported;
        if (target === undefined || !isRunTime(imported)) return [];
        return [{ from: file.path, to: target, line }];
      }),
    );
  return inCircles(arrows).map(({ from, to, line }) => {
    return { path: from, line, message: `${to} imports it too, in the end: move what both need` };
  });
}
