/** Unreachable files, unused exports, misnumbered migrations. */
import { mentionedFiles, readImports } from './imports.ts';
import { type Finding, findAll, isCode, isTest, type SourceFile } from './source-files.ts';

/**
 * Entry points because they are named here or, for people and tools, in package.json, bin/ or an HTML page.
 */
const ENTRIES = ['server/main.ts', 'sdk/index.ts', 'cli/main.ts'];

/** Every path with a code ending in the text, from the root. */
function namedPaths({ path, text }: SourceFile): string[] {
  const folder = path.slice(0, path.lastIndexOf('/') + 1);
  const named = [...text.matchAll(/[\w./-]+\.(?:ts|tsx|js)\b/g)].map(([name]) => name.replace(/^\.?\//, ''));
  return named.flatMap((name) => [name, folder + name]);
}

function entries(files: readonly SourceFile[]): string[] {
  const starters = files.filter(({ path }) => /^package\.json$|^(?:bin|\.ci|deploy)\/|\.html$/.test(path));
  const configurations = files.filter(({ path }) => /\.config\.[tj]s$/.test(path));
  return [...ENTRIES, ...starters.flatMap(namedPaths), ...configurations.map(({ path }) => path)];
}

function reach(files: ReadonlyMap<string, SourceFile>, from: readonly string[]): Set<string> {
  const reached = new Set(from);
  for (const path of reached) {
    const file = files.get(path);
    for (const next of file ? mentionedFiles(file) : []) reached.add(next);
  }
  return reached;
}

/** Code files that no entry reaches. Files in the server package must be reachable without tests. */
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

const EXPORT = /^export (?:async )?(?:abstract )?(function\*?|class|const|let|interface|type) ([\w$]+)/gm;

/** Exports that no other file imports. Tests count as importers. */
export function checkDeadExports(files: readonly SourceFile[]): Finding[] {
  const code = files.filter(({ path }) => isCode(path) && !ENTRIES.includes(path));
  const imports = files.filter(({ path }) => isCode(path)).flatMap(readImports);
  const byTarget = Map.groupBy(imports, ({ target }) => target);
  return code.flatMap((file) => {
    const taken = (byTarget.get(file.path) ?? []).map(({ clause }) => clause).join();
    const isTaken = (name: string) => taken.includes('*') || new RegExp(`\\b${name}\\b`).test(taken);
    // A type that its own file uses is part of the signature of another export there.
    const isOwn = (kind: string, name: string) =>
      /^[it]/.test(kind) && file.text.split(new RegExp(`\\b${name}\\b`)).length > 2;
    return [...file.text.matchAll(EXPORT)].flatMap(([declared, kind = '', name = '']) => {
      if (isTaken(name) || isOwn(kind, name)) return [];
      const declaration = new RegExp(`^${declared.replace(/[$*]/g, '\\$&')}\\b`, 'gm');
      return findAll(file, declaration, `nobody imports ${name}: drop the export or the code`);
    });
  });
}

/**
 * Migrations are 0001-, 0002-, … without a gap or a duplicate: two branches cannot both add one unnoticed.
 */
export function checkMigrations(files: readonly SourceFile[]): Finding[] {
  const isMigration = (path: string) =>
    /^server\/metadata\/migrations\/(?!migrations\.)[^/]+(?<!\.test\.ts)$/.test(path);
  const paths = files
    .map(({ path }) => path)
    .filter(isMigration)
    .sort();
  return paths.flatMap((path, position) => {
    const wanted = String(position + 1).padStart(4, '0');
    if (new RegExp(`/${wanted}-[a-z0-9-]+\\.sql$`).test(path)) return [];
    return [{ path, line: 1, message: `expected migration ${wanted}-<name>.sql here` }];
  });
}
