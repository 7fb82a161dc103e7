/**
 * The SDK as a package that npm installs: JavaScript with declarations, without dependencies, for browsers
 * and for Node 22 or newer.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isolatedDeclarationSync, transformSync } from 'rolldown/experimental';
import { type Entry, packageOf } from './tarball.ts';

const ROOT = join(import.meta.dirname, '..');
const GENERATED = ['build/sdk/operations.ts'];
const DECLARED = 'build/sdk/schema.d.ts';

/** Sources import each other as `.ts`. */
const asJavaScript = (code: string) =>
  code.replace(/((?:from|import\() ?['"]\.[^'"]*)\.ts(['"])/g, '$1.js$2');

function compiled(path: string): Entry[] {
  const source = readFileSync(join(ROOT, path), 'utf8');
  const script = transformSync(path, source, { target: 'es2024' });
  const declarations = isolatedDeclarationSync(path, source);
  const [error] = [...script.errors, ...declarations.errors];
  if (error !== undefined) throw new Error(`${path}: ${error.message}`);
  const base = path.replace(/\.ts$/, '');
  return [
    { name: `${base}.js`, bytes: Buffer.from(asJavaScript(script.code)) },
    { name: `${base}.d.ts`, bytes: Buffer.from(asJavaScript(declarations.code)) },
  ];
}

/** The tarball. scripts/write-sdk.ts must have written its files before. */
export function sdkPackage(): Buffer {
  const { version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const description = {
    name: 'cloudlet-sdk',
    version,
    license,
    description: 'SDK of Cloudlet, a whole cloud in one process',
    type: 'module',
    engines: { node: '>=22' },
    exports: { '.': { types: './sdk/index.d.ts', default: './sdk/index.js' } },
  };
  const sources = readdirSync(join(ROOT, 'sdk'))
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => `sdk/${name}`);
  return packageOf(description, [
    ...[...sources, ...GENERATED].flatMap(compiled),
    { name: DECLARED, bytes: Buffer.from(asJavaScript(readFileSync(join(ROOT, DECLARED), 'utf8'))) },
    { name: 'README.md', bytes: readFileSync(join(ROOT, 'sdk/README.md')) },
    { name: 'LICENSE', bytes: readFileSync(join(ROOT, 'LICENSE')) },
  ]);
}
