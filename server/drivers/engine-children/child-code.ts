/**
 * Run as a program: writes the code of children, without types, into the folder that is its first word. The
 * second is the file they begin with; then come the packages they need. A child sees
 * nothing of the folder that Cloudlet is installed in, and Node is ready in half the time when there is
 * nothing to strip: what it has compiled for one user it does not take for another.
 */
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, extname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const SERVER = join(import.meta.dirname, '../..');
/** An import that is left when the types are gone. */
const IMPORT = /(\bfrom\s*')(\.[^']+)\.ts'/g;

/** All that runs, and says how; packages hold as much again for people. */
const CODE = new Set(['', '.js', '.cjs', '.mjs', '.json']);

const [, , folder = '', entry = '', ...packages] = process.argv;
const written = new Set<string>();

function write(path: string): void {
  if (written.has(path)) return;
  written.add(path);
  const code = stripTypeScriptTypes(readFileSync(path, 'utf8'));
  const target = join(folder, relative(SERVER, path).replace(/\.ts$/, '.mjs'));
  mkdirSync(dirname(target), { recursive: true });
  writeFileSync(target, code.replace(IMPORT, "$1$2.mjs'"));
  for (const [, , name] of code.matchAll(IMPORT)) write(join(dirname(path), `${name}.ts`));
}

function copyPackage(name: string): void {
  const [root = ''] = fileURLToPath(import.meta.resolve(name)).split(/(?<=[/\\]node_modules[/\\])/);
  cpSync(join(root, name), join(folder, 'node_modules', name), {
    recursive: true,
    filter: (path) => CODE.has(extname(path)),
  });
}

// Others than we run it.
process.umask(0o022);
rmSync(folder, { recursive: true, force: true });
write(entry);
for (const name of packages) copyPackage(name);
