/** The imports of each file. The formatter has put every import at the beginning of a line. */
import { posix } from 'node:path';
import { lineAt, type SourceFile } from './source-files.ts';

export interface Import {
  /** As written: `./store.ts`, `node:fs`, `fastify`. */
  readonly specifier: string;
  /** The imported file, from the root; undefined for packages. */
  readonly target: string | undefined;
  readonly line: number;
  /** Imported names, as written; `*` for all, also for a dynamic import. */
  readonly clause: string;
}

const STATEMENT = /^(?:import\b([^;'"`()=]*?)(?:\bfrom )?|export\b([^;'"`()=]*?)\bfrom )'([^']+)'/gm;
const DYNAMIC = /\bimport\('([^']+)'\)/g;

function resolveTarget(path: string, specifier: string): string | undefined {
  return specifier.startsWith('.') ? posix.join(posix.dirname(path), specifier) : undefined;
}

/** Static and dynamic imports, and re-exports. */
export function readImports({ path, text }: SourceFile): Import[] {
  const found = [
    ...[...text.matchAll(STATEMENT)].map(({ 1: taken, 2: passedOn, 3: specifier = '', index }) => {
      return { specifier, index, clause: taken ?? passedOn ?? '' };
    }),
    ...[...text.matchAll(DYNAMIC)].map(({ 1: specifier = '', index }) => ({ specifier, index, clause: '*' })),
  ];
  return found.map(({ specifier, index, clause }) => {
    return { specifier, clause, target: resolveTarget(path, specifier), line: lineAt(text, index) };
  });
}

/** Files named by a string: in an import, a script, or a program such as `programFile('drivers/x')`. */
export function mentionedFiles({ path, text }: SourceFile): string[] {
  const named = text.matchAll(/'(\.{1,2}\/[\w./-]+\.(?:ts|tsx|js))'/g);
  const programs = text.matchAll(/\bprogramFile\('([^']+)'\)/g);
  return [
    ...[...named].map(([, name = '']) => posix.join(posix.dirname(path), name)),
    ...[...text.matchAll(/'(scripts\/[\w-]+\.js)'/g)].map(([, name = '']) => name),
    ...[...programs].map(([, name = '']) => `server/${name}.ts`),
  ];
}
