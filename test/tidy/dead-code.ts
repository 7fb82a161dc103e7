/** Files that nothing reaches, exports that nothing takes, migrations out of step. */
import { readCode } from './code-text.ts';
import { mentionedFiles, readImports } from './imports.ts';
import { type Finding, isCode, isTest, lineAt, type SourceFile } from './source-files.ts';

/**
 * Files that start something by being named here or, for people and tools, in package.json, bin/, .ci/ or an
 * HTML page.
 */
const ENTRIES = ['server/main.ts', 'sdk/index.ts', 'cli/main.ts'];

/** Every path with a code ending that the text names, from the root. */
function namedPaths({ path, text }: SourceFile): string[] {
  const folder = path.includes('/') ? path.slice(0, path.lastIndexOf('/') + 1) : '';
  const named = [...text.matchAll(/[\w./-]+\.(?:ts|tsx|js)\b/g)].map(([name]) => name.replace(/^\.?\//, ''));
  return named.flatMap((name) => [name, folder + name]);
}

function entries(files: readonly SourceFile[]): string[] {
  const starters = files.filter(
    ({ path }) => path === 'package.json' || /^(?:bin|\.ci|deploy)\//.test(path) || path.endsWith('.html'),
  );
  const configurations = files.filter(({ path }) => /(?:^|\/)[\w.-]+\.config\.(?:ts|js)$/.test(path));
  return [...ENTRIES, ...starters.flatMap(namedPaths), ...configurations.map(({ path }) => path)];
}

function reach(files: ReadonlyMap<string, SourceFile>, from: readonly string[]): Set<string> {
  const reached = new Set<string>();
  const waiting = [...from];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const file = files.get(path);
    if (file === undefined || reached.has(path)) continue;
    reached.add(path);
    const imported = readImports(file).flatMap(({ target }) => target ?? []);
    waiting.push(...imported, ...mentionedFiles(file));
  }
  return reached;
}

/** Code files that no entry leads to. What the server ships must be reached without the help of a test. */
export function checkDeadFiles(files: readonly SourceFile[]): Finding[] {
  const code = files.filter(({ path }) => isCode(path));
  const byPath = new Map(code.map((file) => [file.path, file]));
  const tests = code.filter(({ path }) => /\.test\.tsx?$/.test(path)).map(({ path }) => path);
  const shipped = reach(byPath, entries(files));
  const tested = reach(byPath, tests);
  return code.flatMap(({ path }) => {
    const mayServeTests = isTest(path) || path.startsWith('scripts/');
    if (shipped.has(path) || (mayServeTests && tested.has(path))) return [];
    const what = tested.has(path) ? 'only tests reach it' : 'nothing reaches it';
    return [{ path, line: 1, message: `${what}: remove it, or move it to server/testing/` }];
  });
}

const VALUE = /\bexport\s+(?:async\s+)?(?:function\*?|class|const|let|abstract\s+class)\s+([\w$]+)/g;
const TYPE = /\bexport\s+(?:interface|type)\s+([\w$]+)/g;
const LIST = /\bexport\s+(?:type\s+)?\{([^}]*)\}(?!\s*from)/g;

interface Exported {
  readonly name: string;
  readonly index: number;
}

function exportsOf(code: string): Exported[] {
  const values = [...code.matchAll(VALUE)].map((match) => ({ name: match[1] ?? '', index: match.index }));
  // A type that its own file uses is part of the signature of something else exported there.
  const types = [...code.matchAll(TYPE)]
    .map((match) => ({ name: match[1] ?? '', index: match.index }))
    .filter(
      ({ name }) =>
        (code.match(new RegExp(`(?<![\\w$])${name.replaceAll('$', '\\$')}(?![\\w$])`, 'g')) ?? []).length < 2,
    );
  const listed = [...code.matchAll(LIST)].flatMap((match) =>
    (match[1] ?? '')
      .split(',')
      .map((part) => ({ name: part.trim().replace(/^.*\sas\s+/s, ''), index: match.index })),
  );
  return [...values, ...types, ...listed].filter(({ name }) => name !== '');
}

/** Exports that no other file imports. Tests count as importers. */
export function checkDeadExports(files: readonly SourceFile[]): Finding[] {
  const code = files.filter(({ path }) => isCode(path));
  const taken = new Map<string, Set<string>>();
  for (const { target, names } of code.flatMap(readImports)) {
    if (target === undefined) continue;
    const known = taken.get(target) ?? new Set();
    taken.set(target, known);
    for (const name of names) known.add(name);
  }
  const open = new Set([...ENTRIES.filter((path) => path.startsWith('sdk/'))]);
  return code
    .filter(({ path }) => !open.has(path))
    .flatMap(({ path, text }) => {
      const used = taken.get(path) ?? new Set();
      if (used.has('*')) return [];
      return exportsOf(readCode(text).code)
        .filter(({ name }) => !used.has(name))
        .map(({ name, index }) => ({
          path,
          line: lineAt(text, index),
          message: `nobody imports ${name}: drop the export or the code`,
        }));
    });
}

/**
 * Migrations are 0001-, 0002-, … without a gap or a double, so that two branches cannot both add one unseen.
 */
export function checkMigrations(files: readonly SourceFile[]): Finding[] {
  const paths = files
    .map(({ path }) => path)
    .filter(
      (path) =>
        /^server\/metadata\/migrations\/[^/]+$/.test(path) && !/\/migrations\.|\.test\.ts$/.test(path),
    )
    .sort();
  return paths.flatMap((path, position) => {
    const wanted = String(position + 1).padStart(4, '0');
    if (new RegExp(`/${wanted}-[a-z0-9-]+\\.ts$`).test(path)) return [];
    return [{ path, line: 1, message: `expected migration ${wanted}-<name>.ts here` }];
  });
}
