/**
 * Makes the client a package that others can install: `node scripts/pack-sdk.ts` (with the Node in
 * `node_modules/.bin`) prints the path of the tarball. It has no dependencies, and runs in browsers and on
 * Node from 22 on.
 */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { writeSdkTypes } from './write-sdk.ts';

const ROOT = join(import.meta.dirname, '..');
const PACKAGE = join(ROOT, 'build/sdk-package');

/** Path of the tarball. */
export function packSdk(): string {
  writeSdkTypes();
  rmSync(PACKAGE, { recursive: true, force: true });
  const compile = join(ROOT, 'node_modules/.bin/tsc');
  execFileSync(compile, ['-p', join(ROOT, 'sdk/tsconfig.package.json')], { stdio: 'inherit' });
  // Declarations that the compiler reads are not among those that it writes.
  mkdirSync(join(PACKAGE, 'build/sdk'), { recursive: true });
  copyFileSync(join(ROOT, 'build/sdk/schema.d.ts'), join(PACKAGE, 'build/sdk/schema.d.ts'));
  for (const name of ['LICENSE', 'sdk/README.md'])
    copyFileSync(join(ROOT, name), join(PACKAGE, name.split('/').at(-1) ?? name));
  const { version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const description = {
    name: 'cloudlet-client',
    version,
    license,
    description: 'Client of Cloudlet, a whole cloud in one process',
    type: 'module',
    engines: { node: '>=22' },
    exports: { '.': { types: './sdk/index.d.ts', default: './sdk/index.js' } },
  };
  writeFileSync(join(PACKAGE, 'package.json'), `${JSON.stringify(description, null, 2)}\n`);
  const packed = execFileSync('npm', ['pack', '--json', '--silent'], { cwd: PACKAGE, encoding: 'utf8' });
  return join(PACKAGE, JSON.parse(packed)[0].filename);
}

if (import.meta.main) console.log(packSdk());
