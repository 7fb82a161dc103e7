/**
 * Run as a program: writes the child's code, without types, into the folder that it is given. A child sees
 * nothing of the folder that Cloudlet is installed in, and Node is ready in half the time when there is
 * nothing to strip: what it has compiled for one user it does not take for another.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { dirname, join, relative } from 'node:path';

const ENTRY = join(import.meta.dirname, './child.ts');
const SERVER = join(import.meta.dirname, '../..');
/** An import that is left when the types are gone. */
const IMPORT = /(\bfrom\s*')(\.[^']+)\.ts'/g;

const [, , folder = ''] = process.argv;
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

// Others than we run it.
process.umask(0o022);
rmSync(folder, { recursive: true, force: true });
write(ENTRY);
