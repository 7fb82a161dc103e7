/**
 * Bundles the server into build/server/STAMP/: main.js, a file for each program and thread listed in
 * server/platform/program-files.ts, packages/ for children of engines, and the migrations. Each build has a
 * separate folder, because a running cloud later loads files of its own build for threads and children.
 * scripts/builds.js runs it when a source changed.
 */
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { build } from 'rolldown';
import { bundlePackages } from './build-packages.ts';
import { STRICT } from './strict-bundle.ts';

const ROOT = join(import.meta.dirname, '..');
const SERVER = join(ROOT, 'server');
const BUILDS = join(ROOT, 'build/server');
/** The link to the build for the next start. */
const CURRENT = 'current';
/** Number of builds kept for clouds that still run them. */
const KEPT_BUILDS = 4;
/** Packages that stay outside: binaries, modules loaded by name at run time, and optional ones. */
export const NOT_BUNDLED = ['better-sqlite3', '@node-rs/crc32', 'pg-native'];

/** Names of programs and threads: `programFile('drivers/…')`. */
function programNames(): string[] {
  const files = globSync('**/*.ts', { cwd: SERVER }).filter((file) => !file.endsWith('.test.ts'));
  return files.flatMap((file) => {
    const text = readFileSync(join(SERVER, file), 'utf8');
    return [...text.matchAll(/\bprogramFile\('([^']+)'\)/g)].map(([, name = '']) => name);
  });
}

/**
 * Removes non-ASCII letters from libraries' notices, which asciiOnly does not: the text of a file
 * with one such letter takes twice the memory for as long as the server runs.
 */
const PLAIN_NOTICES = {
  name: 'plain notices',
  transform(code: string) {
    const plain = code.replace(/\/\*![\s\S]*?\*\//g, (notice) =>
      // The length is unchanged, so no position changes.
      notice.replace(/[^\0-\x7f]/g, (letter) => letter.normalize('NFD').replace(/[^\0-\x7f]+/, '') || '?'),
    );
    return plain === code ? null : { code: plain, map: null };
  },
};

/** Exports of `node:http` that load a whole client of HTTP, with WebAssembly, when they are read. */
const COSTLY_EXPORTS = ['WebSocket', 'CloseEvent', 'MessageEvent'];
const CHEAP_HTTP = '\0cheap-http';

/**
 * Takes `node:http` without an `import`, which reads all exports of a module, also those not asked for: 3 MB
 * less memory, and a sooner start.
 */
const CHEAP_IMPORT = {
  name: 'cheap import',
  resolveId(source: string, _importer: string | undefined, { kind }: { kind: string }) {
    return kind === 'import-statement' && /^(node:)?http$/.test(source) ? CHEAP_HTTP : null;
  },
  load(id: string) {
    if (id !== CHEAP_HTTP) return null;
    const cheap = Object.keys(http).filter((name) => !COSTLY_EXPORTS.includes(name));
    const own = "const own = process.getBuiltinModule('node:http');";
    return `${own} export default own; export const { ${cheap.join(', ')} } = own;`;
  },
};

async function bundle(folder: string): Promise<void> {
  const names = ['main', ...programNames()];
  const input = Object.fromEntries(
    names.map((name) => [name.replaceAll('/', '.'), join(SERVER, `${name}.ts`)]),
  );
  await build({
    ...STRICT,
    input,
    cwd: ROOT,
    platform: 'node',
    external: NOT_BUNDLED,
    // Libraries have no side effects on import: unused code is not in a program's chunks.
    treeshake: { moduleSideEffects: (id) => !id.includes('/libs/') },
    plugins: [PLAIN_NOTICES, CHEAP_IMPORT],
    output: {
      dir: folder,
      entryFileNames: '[name].js',
      chunkFileNames: '[name]-[hash].js',
      sourcemap: true,
      // Names are kept, for stacks and for errors that show their class; half of the bytes are white space.
      minify: { compress: false, mangle: false, codegen: { removeWhitespace: true, asciiOnly: true } },
      sourcemapExcludeSources: true,
    },
  });
  cpSync(join(SERVER, 'metadata/migrations'), join(folder, 'metadata/migrations'), {
    recursive: true,
    filter: (path) => statSync(path).isDirectory() || path.endsWith('.sql'),
  });
}

/**
 * Points `current` at a build, atomically. A new link each time: bin/cloudlet compares its age with the
 * sources.
 */
function makeCurrent(stamp: string): void {
  const link = join(BUILDS, `.${CURRENT}-${process.pid}`);
  symlinkSync(stamp, link);
  renameSync(link, join(BUILDS, CURRENT));
}

function removeOld(stamp: string): void {
  // Names with a dot are builds in progress.
  const others = readdirSync(BUILDS).filter(
    (name) => name !== CURRENT && name !== stamp && !name.startsWith('.'),
  );
  const ageOf = (name: string) => statSync(join(BUILDS, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const newestFirst = others.sort((a, b) => ageOf(b) - ageOf(a));
  for (const name of newestFirst.slice(KEPT_BUILDS - 1)) {
    rmSync(join(BUILDS, name), { recursive: true, force: true });
  }
}

/** Builds the server, unless another process just did. `stamp`: of the sources. */
async function buildServer(stamp: string): Promise<void> {
  const folder = join(BUILDS, `.${stamp}-${process.pid}`);
  const target = join(BUILDS, stamp);
  try {
    if (!existsSync(target)) {
      mkdirSync(folder, { recursive: true });
      await Promise.all([bundle(folder), bundlePackages(join(folder, 'packages'))]);
      if (!existsSync(target)) renameSync(folder, target);
    }
    makeCurrent(stamp);
    removeOld(stamp);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) await buildServer(process.argv[2] ?? '');
