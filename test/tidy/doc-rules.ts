/** Links in Markdown pages have a target, and the pages about the code name existing files. */
import { posix } from 'node:path';
import { type Finding, lineAt, type SourceFile } from './source-files.ts';

const LINK = /\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]+))?\)/g;
const PICTURE = /\.(?:png|svg)$/;
const HEADING = /^#+ (.*)$/gm;
const FENCED = /^```.*?^```/gms;

/** A file of ours, or a path from the root; `*` stands for a part of a name. */
const PATH =
  /`((?:(?:server|libs|cli|console|sdk|docs|test|scripts|bench|deploy|bin)\/[\w./*-]*)|[\w./*-]+\.tsx?)`/g;
/** Pages that tell what was. */
const HISTORY = /^(?:CHANGELOG\.md$|docs\/decisions\/)/;

export function checkDocs(files: readonly SourceFile[]): Finding[] {
  const pages = files.filter(({ path }) => path.endsWith('.md'));
  const known = knownPaths(files);
  const anchors = new Map(pages.map(({ path, text }) => [path, anchorsOf(text)]));
  return pages.flatMap((page) => [
    ...deadLinks(page, known, anchors),
    ...(HISTORY.test(page.path) ? [] : missingFiles(page, known)),
  ]);
}

/** Files and their folders. */
function knownPaths(files: readonly SourceFile[]): ReadonlySet<string> {
  const known = new Set<string>();
  for (const { path } of files) {
    for (let each = path; each !== '.'; each = posix.dirname(each)) known.add(each);
  }
  return known;
}

function anchorsOf(text: string): ReadonlySet<string> {
  const headings = [...text.replace(FENCED, '').matchAll(HEADING)].map(([, heading = '']) => heading);
  return new Set(headings.map(anchorOf));
}

/** As created by GitHub. */
function anchorOf(heading: string): string {
  const shown = heading
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .trim()
    .toLowerCase();
  return shown.replace(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-');
}

function deadLinks(
  { path, text }: SourceFile,
  known: ReadonlySet<string>,
  anchors: ReadonlyMap<string, ReadonlySet<string>>,
): Finding[] {
  return [...text.matchAll(LINK)].flatMap(({ 1: to = '', 2: anchor, index }) => {
    const target = to === '' ? path : posix.join(posix.dirname(path), to).replace(/\/$/, '');
    const line = lineAt(text, index);
    if (PICTURE.test(target)) return [];
    if (!known.has(target)) return [{ path, line, message: `no file ${target}: mend the link` }];
    if (anchor === undefined || (anchors.get(target)?.has(anchor) ?? true)) return [];
    return [{ path, line, message: `no heading #${anchor} in ${target}: mend the link` }];
  });
}

function missingFiles({ path, text }: SourceFile, known: ReadonlySet<string>): Finding[] {
  const all = [...known];
  const exists = (named: string) => {
    const pattern = named.replace(/\/$/, '').replaceAll('.', '\\.').replaceAll('*', '[^/]*');
    const whole = new RegExp(`(?:^|/)${pattern}$`);
    return all.some((each) => whole.test(each));
  };
  return [...text.replace(FENCED, blank).matchAll(PATH)].flatMap(({ 1: named = '', index }) =>
    known.has(named) || exists(named)
      ? []
      : [{ path, line: lineAt(text, index), message: `no file ${named}: name where it lies now` }],
  );
}

/** Keeps the numbers of the lines after it. */
function blank(text: string): string {
  return text.replace(/[^\n]/g, ' ');
}
