/**
 * Run as a program: writes the code of children, with types stripped, into the folder in its first
 * argument. The second argument is the entry file, followed by the required packages. Children
 * cannot see Cloudlet's installation folder, and Node starts in half the time without types to
 * strip, because its compile cache is not shared between users.
 */
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, extname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { COPIED_FROM } from '../../platform/program-files.ts';

/** A relative import: in a source after its types are stripped, or in a build, with any kind of quote. */
const IMPORT = /(\b(?:from\s*|import\s*\(?\s*)(['"`]))(\.[^'"`]+)\.([jt]s)\2/g;

/** File types needed at run time; the rest of packages is documentation and types. */
const CODE = new Set(['', '.js', '.cjs', '.mjs', '.json']);

/** See scripts/build-packages.ts; sources have none. */
const BUNDLED = join(COPIED_FROM, 'packages');

const [, , folder = '', entry = '', ...packages] = process.argv;
const written = new Set<string>();

function write(path: string): void {
  if (written.has(path)) return;
  written.add(path);
  const text = readFileSync(path, 'utf8');
  const code = path.endsWith('.ts') ? stripTypeScriptTypes(text) : text;
  const target = join(folder, relative(COPIED_FROM, path).replace(/\.[jt]s$/, '.mjs'));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, code.replace(IMPORT, '$1$3.mjs$2'));
  for (const [, , , name, ending] of code.matchAll(IMPORT)) write(join(dirname(path), `${name}.${ending}`));
}

/** The package of an import, which may name a part: some packages have no main module. */
function packageOf(wanted: string): string {
  return wanted.split('/', wanted.startsWith('@') ? 2 : 1).join('/');
}

function copyPackage(wanted: string): void {
  const name = packageOf(wanted);
  // The innermost folder of packages: Cloudlet may itself be installed as a package in another one.
  const [root = ''] = /^.*[/\\]node_modules[/\\]/.exec(fileURLToPath(import.meta.resolve(wanted))) ?? [];
  cpSync(join(root, name), join(folder, 'node_modules', name), {
    recursive: true,
    filter: (path) => CODE.has(extname(path)),
  });
}

/** Packages that are in no bundled file, because code loads them by name: a part of the build. */
function copyBundled(): void {
  const isNeeded = packages.some((wanted) => {
    const path = join(BUNDLED, packageOf(wanted));
    return existsSync(path) || existsSync(`${path}.js`);
  });
  if (isNeeded) cpSync(BUNDLED, join(folder, 'node_modules'), { recursive: true });
}

// Other users must be able to run it.
process.umask(0o022);
rmSync(folder, { recursive: true, force: true });
write(entry);
if (existsSync(BUNDLED)) copyBundled();
else for (const name of packages) copyPackage(name);
