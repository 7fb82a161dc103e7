/** Which file imports what from where. */
import { posix } from 'node:path';
import { readCode } from './code-text.ts';
import { lineAt, type SourceFile } from './source-files.ts';

export interface Import {
  /** As written: `./store.ts`, `node:fs`, `fastify`. */
  readonly specifier: string;
  /** The file it means, from the root; undefined for packages. */
  readonly target: string | undefined;
  readonly line: number;
  /** Names taken, before any `as`; `*` for all, also by a dynamic import. */
  readonly names: readonly string[];
}

const STATEMENT = /(?<![.\w$])(?:import|export)\b(?!\s*\.)([^;'"`()]*?)(?:\bfrom\s*)?['"]/g;
const DYNAMIC = /(?<![.\w$])import\s*\(\s*['"`]/g;

function names(clause: string): string[] {
  if (clause.includes('*')) return ['*'];
  const braces = /\{([^}]*)\}/.exec(clause)?.[1] ?? '';
  const listed = braces.split(',').map((part) => part.trim().replace(/^type\s+/, ''));
  const plain = /^\s*(?:type\s+)?[A-Za-z_$][\w$]*/.test(clause.replace(/^\s*type\s+(?=\{)/, ''))
    ? ['default']
    : [];
  return [...plain, ...listed.map((part) => part.replace(/\s+as\s+.*$/s, '')).filter((name) => name !== '')];
}

function resolveTarget(path: string, specifier: string): string | undefined {
  if (!specifier.startsWith('.')) return undefined;
  return posix.normalize(posix.join(posix.dirname(path), specifier));
}

/** Static and dynamic imports, and re-exports. */
export function readImports(file: SourceFile): Import[] {
  const { code, strings } = readCode(file.text);
  const literals = new Map(strings.map(({ index, value }) => [index, value]));
  const found = [
    ...[...code.matchAll(STATEMENT)].map((match) => ({ match, names: names(match[1] ?? '') })),
    ...[...code.matchAll(DYNAMIC)].map((match) => ({ match, names: ['*'] })),
  ];
  return found.flatMap(({ match, names }) => {
    const specifier = literals.get(match.index + match[0].length);
    if (specifier === undefined || (match[0].startsWith('export') && !/from\s*['"]$/.test(match[0])))
      return [];
    const target = resolveTarget(file.path, specifier);
    return [{ specifier, target, line: lineAt(file.text, match.index), names }];
  });
}

/**
 * Files named by a relative string that is no import, such as a worker's `new URL('./x.ts',
 * import.meta.url)`.
 */
export function mentionedFiles(file: SourceFile): string[] {
  return readCode(file.text).strings.flatMap(({ value }) =>
    /^\.{1,2}\/[\w./-]+\.(?:ts|tsx|js)$/.test(value) ? [resolveTarget(file.path, value) ?? ''] : [],
  );
}
