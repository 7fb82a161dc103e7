/** Allowed imports: edges in → domains → edges out, and only the composition root sees everything. */
import { type Import, readImports } from './imports.ts';
import { type Finding, isCode, isTest, type SourceFile } from './source-files.ts';

const DOMAINS = [
  'accounts',
  'audit',
  'storage',
  'compute',
  'databases',
  'billing',
  'webhooks',
  'mail',
  'recovery',
  'status',
  'nodes',
];
const EDGES_IN = ['http', 's3', 'hrana'];
/** The foundations of all, from the bottom up: each knows only those before it. */
const GROUND = ['config', 'platform', 'metadata', 'resources', 'calls'];

/** Runs whatever other drivers start. */
const PROCESS_FOLDER = 'server/drivers/host-process/';

/** Packages that only one folder may know, so that they can be exchanged. */
const PACKAGE_HOMES: readonly { readonly name: RegExp; readonly home: RegExp; readonly instead: string }[] = [
  {
    name: /^(?:better-sqlite3|pg|mysql2(?:\/promise)?|kysely|node:sqlite)$/,
    home: /^server\/(?:drivers|metadata)\//,
    instead: 'take a Metadata from metadata/metadata.ts',
  },
  {
    name: /^fastify$|^@fastify\//,
    home: /^server\/(?:http|s3|hrana)\//,
    instead: 'declare the route with defineRoute (http/route.ts)',
  },
  {
    name: /^nodemailer$/,
    home: /^server\/drivers\/smtp\//,
    instead: 'put the mail into the outbox (mail/outbox.ts)',
  },
  {
    name: /^typebox$/,
    home: /^server\/platform\/json\/json-schema\.ts$/,
    instead: 'take Type from platform/json/json-schema.ts, which loads nothing',
  },
];

interface Module {
  readonly path: string;
  /** `http`, `storage`, …; empty for files directly in server/ and for those outside. */
  readonly folder: string;
  readonly inServer: boolean;
  readonly isStore: boolean;
}

function moduleOf(path: string): Module {
  const match = /^server\/(?:([^/]+)\/)?/.exec(path);
  return {
    path,
    folder: match?.[1] ?? '',
    inServer: match !== null,
    isStore: /(?:\/store|-store|-sql)\.ts$/.test(path),
  };
}

function seesEverything(path: string): boolean {
  return /^server\/(?:cloud|commands)\//.test(path) || isTest(path);
}

/** A domain shows itself to the JSON edge in these files; its other files do not know the edge. */
function speaksHttp(path: string): boolean {
  return /^server\/(?:[^/]+\/){1,2}(?:routes|schema|[a-z-]+-(?:routes|schema|page))\.ts$/.test(path);
}

/** A library of libs/ and the path inside it. */
const LIBRARY = /^libs\/([^/]+)\/(.+)$/;

/** The reason why a library must not import, or be imported, or undefined. */
function libraryComplaint(from: string, to: string): string | undefined {
  const [, ours] = LIBRARY.exec(from) ?? [];
  const [, theirs, path] = LIBRARY.exec(to) ?? [];
  if (
    theirs !== undefined &&
    theirs !== ours &&
    path !== 'index.ts' &&
    !(isTest(from) && path?.startsWith('testing/'))
  ) {
    return `libs/${theirs} has one door: import libs/${theirs}/index.ts`;
  }
  if (ours === undefined || theirs !== undefined) return undefined;
  if (isTest(from) && (to.startsWith('server/testing/') || to.startsWith('test/harness/'))) return undefined;
  return 'a library knows nothing of Cloudlet; let its caller give what it needs';
}

/** The reason why `from` must not import `to`, or undefined. */
function complaint(from: Module, to: Module): string | undefined {
  if (from.inServer && !to.inServer && to.path !== 'package.json' && !LIBRARY.test(to.path))
    return 'server/ imports nothing of what is built around it';
  if (!from.inServer) return undefined;
  if (to.folder === 'drivers' && from.folder !== 'drivers') {
    return 'only cloud/, commands/ and tests see drivers/; take the interface as a dependency';
  }
  // metadata/ has stores too: for data that belongs to no domain, offered to all of them.
  const isForeignStore = to.isStore && from.folder !== to.folder;
  if (isForeignStore && (to.folder !== 'metadata' || EDGES_IN.includes(from.folder))) {
    return 'a store belongs to its own folder; call the domain through a function it offers';
  }
  if (DOMAINS.includes(from.folder) && EDGES_IN.includes(to.folder)) {
    const allowed = speaksHttp(from.path);
    return allowed ? undefined : 'a domain knows no edge; only its routes.ts and schema.ts import http/';
  }
  if (
    from.folder === 'drivers' &&
    (EDGES_IN.includes(to.folder) || /\/(?:routes|schema)\.ts$/.test(to.path))
  ) {
    return 'a driver knows only the interface it implements';
  }
  if (
    from.path.startsWith(PROCESS_FOLDER) &&
    to.folder === 'drivers' &&
    !to.path.startsWith(PROCESS_FOLDER)
  ) {
    return 'the folder for foreign processes serves other drivers and knows none';
  }
  const floor = GROUND.indexOf(from.folder);
  if (floor >= 0 && !GROUND.slice(0, floor + 1).includes(to.folder) && to.inServer) {
    return `${from.folder}/ is ground: it knows only ${GROUND.slice(0, floor).join(', ') || 'itself'}`;
  }
  if (from.folder === '' && from.path !== 'server/main.ts') return 'directly in server/ is only main.ts';
  return undefined;
}

function packageComplaint(path: string, specifier: string): string | undefined {
  const rule = PACKAGE_HOMES.find(({ name }) => name.test(specifier));
  if (rule === undefined || rule.home.test(path)) return undefined;
  return `${specifier} is not for this folder; ${rule.instead}`;
}

function check(file: SourceFile, imported: Import): string | undefined {
  if (imported.target === undefined) {
    const isOurs = file.path.startsWith('server/') && !seesEverything(file.path);
    // A route's schema may name Fastify's types.
    if (file.path === 'server/http/route.ts' || !isOurs) return undefined;
    return packageComplaint(file.path, imported.specifier);
  }
  if (/^(?:test\/acceptance|sdk|cli|console)\//.test(file.path) && imported.target.startsWith('server/')) {
    return 'black box: it may use the public API only, nothing from server/';
  }
  const ofLibrary = libraryComplaint(file.path, imported.target);
  if (ofLibrary !== undefined || seesEverything(file.path)) return ofLibrary;
  return complaint(moduleOf(file.path), moduleOf(imported.target));
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
