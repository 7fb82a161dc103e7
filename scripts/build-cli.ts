/**
 * Builds the client into one file, build/cli/cloudlet.mjs, and packs it as build/cli/cloudlet.tgz, which npm
 * installs; the SDK is packed beside it. scripts/builds.js runs it when a source changed.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'vite';
import { NOT_BUNDLED } from './build-server.ts';
import { sdkPackage } from './sdk-package.ts';
import { type Entry, packageOf } from './tarball.ts';
import { writeSdkTypes } from './write-sdk.ts';

const ROOT = join(import.meta.dirname, '..');
const TARGET = join(ROOT, 'build/cli');
const STAMP = join(ROOT, 'build/cli.stamp');
/** The oldest supported Node of the client. */
const LEAST_NODE = 20;

function clientPackage(program: Buffer): Buffer {
  const { version, license } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const description = {
    name: 'cloudlet',
    version,
    license,
    description: 'Client of Cloudlet: files, machines and databases of a cloud from any computer',
    type: 'module',
    engines: { node: `>=${LEAST_NODE}` },
    bin: { cloudlet: 'cloudlet.mjs' },
  };
  const files: Entry[] = [
    { name: 'cloudlet.mjs', bytes: program, mode: 0o755 },
    { name: 'README.md', bytes: readFileSync(join(ROOT, 'cli/README.md')) },
    { name: 'LICENSE', bytes: readFileSync(join(ROOT, 'LICENSE')) },
  ];
  return packageOf(description, files);
}

/** Throws for a program with imports outside Node: users have no other packages. */
function assertAlone(built: Awaited<ReturnType<typeof build>>): void {
  const outputs = [built].flat().flatMap((each) => ('output' in each ? each.output : []));
  const imported = outputs.flatMap((each) => (each.type === 'chunk' ? each.imports : []));
  const foreign = imported.filter((name) => !name.startsWith('node:'));
  if (foreign.length > 0) throw new Error(`the client must not import ${foreign.join(', ')}`);
}

/** Builds all three files. `stamp`: of their sources. Throws the bundler's errors. */
async function buildCli(stamp: string): Promise<void> {
  const folder = join(ROOT, `build/cli-${process.pid}`);
  try {
    writeSdkTypes();
    const built = await build({
      root: join(ROOT, 'cli'),
      configFile: false,
      logLevel: 'error',
      ssr: { noExternal: true, external: NOT_BUNDLED },
      build: {
        ssr: 'main.ts',
        target: `node${LEAST_NODE}`,
        outDir: folder,
        emptyOutDir: true,
        minify: true,
        rollupOptions: {
          // Libraries have no side effects on import, so unused code is dropped.
          treeshake: { moduleSideEffects: (id) => !id.includes('/libs/') },
          output: { entryFileNames: 'cloudlet.mjs', banner: '#!/usr/bin/env node', codeSplitting: false },
        },
      },
    });
    assertAlone(built);
    const program = join(folder, 'cloudlet.mjs');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'cloudlet.tgz'), clientPackage(readFileSync(program)));
    writeFileSync(join(folder, 'cloudlet-sdk.tgz'), sdkPackage());
    rmSync(STAMP, { force: true });
    rmSync(TARGET, { recursive: true, force: true });
    renameSync(folder, TARGET);
    writeFileSync(STAMP, stamp);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) await buildCli(process.argv[2] ?? '');
