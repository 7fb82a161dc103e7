/** Who may import whom: edges in → domains → edges out, and only the composition root sees everything. */
import { type Import, readImports } from './imports.ts';
import { type Finding, isCode, isTest, type SourceFile } from './source-files.ts';

const DOMAINS = ['accounts', 'storage', 'compute', 'databases', 'billing', 'recovery', 'system'];
const EDGES_IN = ['http', 's3'];

/** Packages that only some folder may know, so that what stands behind it can be exchanged. */
const PACKAGE_HOMES: readonly { readonly name: RegExp; readonly home: RegExp; readonly instead: string }[] = [
  {
    name: /^(?:better-sqlite3|pg|kysely|node:sqlite)$/,
    home: /^server\/(?:drivers|metadata)\//,
    instead: 'take a Metadata from metadata/metadata.ts',
  },
  {
    name: /^fastify$|^@fastify\//,
    home: /^server\/(?:http|s3)\//,
    instead: 'declare the route with defineRoute (http/route.ts)',
  },
];

interface Place {
  readonly path: string;
  /** `http`, `storage`, …; empty for files directly in server/ and for those outside. */
  readonly folder: string;
  readonly inServer: boolean;
  readonly isStore: boolean;
}

function place(path: string): Place {
  const match = /^server\/(?:([^/]+)\/)?/.exec(path);
  return {
    path,
    folder: match?.[1] ?? '',
    inServer: match !== null,
    isStore: /(?:\/|-)store\.ts$/.test(path),
  };
}

function seesEverything(path: string): boolean {
  return path === 'server/build.ts' || isTest(path) || path.startsWith('server/commands/');
}

/** A domain shows itself to the JSON edge in these two files. */
function speaksHttp(path: string): boolean {
  return /^server\/[^/]+\/(?:routes|schema|[a-z-]+-routes|[a-z-]+-schema)\.ts$/.test(path);
}

/** What is wrong with `from` importing `to`, or undefined. */
function complaint(from: Place, to: Place): string | undefined {
  if (from.inServer && !to.inServer) return 'server/ imports nothing of what is built around it';
  if (!from.inServer) return undefined;
  if (to.folder === 'drivers' && from.folder !== 'drivers') {
    return 'only build.ts, commands/ and tests see drivers/; take the interface as a dependency';
  }
  if (to.isStore && from.folder !== to.folder) {
    return 'a store belongs to its own folder; call the domain through a function it offers';
  }
  if (DOMAINS.includes(from.folder) && EDGES_IN.includes(to.folder)) {
    const allowed = speaksHttp(from.path) && to.path === 'server/http/route.ts';
    return allowed ? undefined : 'a domain knows no edge; only routes.ts and schema.ts import http/route.ts';
  }
  if (
    from.folder === 'drivers' &&
    (EDGES_IN.includes(to.folder) || /\/(?:routes|schema)\.ts$/.test(to.path))
  ) {
    return 'a driver knows only the interface it implements';
  }
  if (from.folder === 'metadata' && (DOMAINS.includes(to.folder) || EDGES_IN.includes(to.folder))) {
    return 'metadata/ serves every domain and knows none';
  }
  if (from.folder === '' && !['server/main.ts', 'server/build.ts'].includes(from.path) && to.folder !== '') {
    return 'files directly in server/ are the ground that all stand on; they import no folder';
  }
  return undefined;
}

function packageComplaint(path: string, specifier: string): string | undefined {
  const rule = PACKAGE_HOMES.find(({ name }) => name.test(specifier));
  if (rule === undefined || rule.home.test(path)) return undefined;
  return `${specifier} is not for this folder; ${rule.instead}`;
}

function check(file: SourceFile, imported: Import): string | undefined {
  if (imported.target === undefined) {
    const isOurs = file.path.startsWith('server/') && !isTest(file.path);
    // A route's schema may name Fastify's types.
    if (file.path === 'server/http/route.ts' || !isOurs) return undefined;
    return packageComplaint(file.path, imported.specifier);
  }
  if (/^(?:test\/acceptance|sdk|cli|console)\//.test(file.path) && imported.target.startsWith('server/')) {
    return 'black box: it may use the public API only, nothing from server/';
  }
  if (seesEverything(file.path)) return undefined;
  return complaint(place(file.path), place(imported.target));
}

/** Imports that cross a band. */
export function checkBands(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isCode(path))
    .flatMap((file) =>
      readImports(file).flatMap((imported) => {
        const message = check(file, imported);
        if (message === undefined) return [];
        return [
          { path: file.path, line: imported.line, message: `imports ${imported.specifier}: ${message}` },
        ];
      }),
    );
}
