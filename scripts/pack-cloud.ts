/**
 * Makes Cloudlet a package that npm installs on a machine with nothing but Node and npm.
 * `node scripts/pack-cloud.ts [FOLDER]`, with the Node in `node_modules/.bin`, prints the tarball's path.
 *
 * It holds the built server, console and client, the sources of the guest image and the set-up's scripts for
 * what a host lacks; a shrinkwrap has the exact versions of the packages that no bundle can hold.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { NOT_BUNDLED } from './build-server.ts';

const ROOT = join(import.meta.dirname, '..');
const PACKAGE = join(ROOT, 'build/cloud-package');
/** Copied unchanged. The server's build is copied from the target of its link: npm packs no links. */
const COPIED = ['bin', 'build/console', 'build/cli', 'guest', 'LICENSE', 'README.md', 'CHANGELOG.md'];

interface Locked {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly dev?: boolean;
  readonly hasInstallScript?: boolean;
}

/** Packages that children load by name: `packages: ['bson', 'mingo/core']` in the engines. */
function childrenPackages(): string[] {
  const files = globSync('server/drivers/engines/*/*-engine.ts', { cwd: ROOT });
  const lists = files.flatMap((file) => [
    ...readFileSync(join(ROOT, file), 'utf8').matchAll(/\bpackages: \[([^\]]+)\]/g),
  ]);
  const names = lists.flatMap(([, list = '']) =>
    [...list.matchAll(/'([^']+)'/g)].map(([, name = '']) => name),
  );
  return names.map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
}

/** The entries of the lock file that these packages need, by their path. */
function closure(packages: Readonly<Record<string, Locked>>, names: readonly string[]): Map<string, Locked> {
  const found = new Map<string, Locked>();
  const add = (name: string, from: string) => {
    // A package finds another as Node does: beside it, or in a folder further up.
    const path = pathsFor(name, from).find((each) => each in packages);
    const entry = path === undefined ? undefined : packages[path];
    if (path === undefined || entry === undefined || found.has(path)) return;
    // The binary of better-sqlite3 is in its package; npm would compile another.
    const { dev: _dev, hasInstallScript: _script, ...kept } = entry;
    found.set(path, kept);
    for (const other of Object.keys({ ...entry.dependencies, ...entry.optionalDependencies }))
      add(other, path);
  };
  for (const name of names) add(name, '');
  return found;
}

function pathsFor(name: string, from: string): string[] {
  const parts = from === '' ? [] : from.split('/node_modules/');
  const folders = parts.map((_, at) => parts.slice(0, parts.length - at).join('/node_modules/'));
  return [...folders.map((folder) => `${folder}/node_modules/${name}`), `node_modules/${name}`];
}

/** Path of the tarball, in `folder`. The builds must be up to date; the set-up ensures that. */
export function packCloud(folder: string): string {
  rmSync(PACKAGE, { recursive: true, force: true });
  for (const path of COPIED) cpSync(join(ROOT, path), join(PACKAGE, path), { recursive: true });
  cpSync(realpathSync(join(ROOT, 'build/server/current')), join(PACKAGE, 'build/server/current'), {
    recursive: true,
  });
  mkdirSync(join(PACKAGE, 'scripts'));
  for (const file of globSync('scripts/*.{js,cjs,json}', { cwd: ROOT }))
    cpSync(join(ROOT, file), join(PACKAGE, file));
  const source = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8'));
  const names = [...new Set([...NOT_BUNDLED, ...childrenPackages()])].filter(
    (name) => name in source.dependencies,
  );
  const { name, version, description, license, type, bin } = source;
  const dependencies = Object.fromEntries(names.sort().map((each) => [each, source.dependencies[each]]));
  const { optionalDependencies } = source;
  const engines = { node: source.engines.node };
  const manifest = {
    name,
    version,
    description,
    license,
    type,
    engines,
    bin,
    dependencies,
    optionalDependencies,
  };
  const wanted = closure(lock.packages, [...names, ...Object.keys(optionalDependencies)]);
  const packages = { '': { name, version, license, dependencies, optionalDependencies, bin, engines } };
  const shrinkwrap = {
    name,
    version,
    lockfileVersion: 3,
    requires: true,
    packages: { ...packages, ...Object.fromEntries(wanted) },
  };
  writeFileSync(join(PACKAGE, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(join(PACKAGE, 'npm-shrinkwrap.json'), `${JSON.stringify(shrinkwrap, null, 2)}\n`);
  mkdirSync(folder, { recursive: true });
  const words = ['pack', '--json', '--silent', '--pack-destination', folder];
  const packed = execFileSync('npm', words, { cwd: PACKAGE, encoding: 'utf8', maxBuffer: 2 ** 26 });
  return join(folder, JSON.parse(packed)[0].filename);
}

if (import.meta.main) console.log(packCloud(process.argv[2] ?? ROOT));
