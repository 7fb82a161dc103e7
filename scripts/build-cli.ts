/**
 * Builds the client into one file, build/cli/cloudlet.mjs, and packs it as build/cli/cloudlet.tgz, which npm
 * installs. scripts/builds.js runs it when a source changed.
 */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build } from 'vite';
import { NOT_BUNDLED } from './build-server.ts';
import { writeSdkTypes } from './write-sdk.ts';

const ROOT = join(import.meta.dirname, '..');
const TARGET = join(ROOT, 'build/cli');
const STAMP = join(ROOT, 'build/cli.stamp');
/** The oldest Node that runs the client. */
const LEAST_NODE = 20;
const BLOCK_BYTES = 512;

interface Entry {
  readonly name: string;
  readonly bytes: Buffer;
  readonly mode: number;
}

/** An archive in the format ustar; without times, so that the same sources give the same bytes. */
function tarOf(entries: readonly Entry[]): Buffer {
  const blocks = entries.flatMap((entry) => [
    headerOf(entry),
    entry.bytes,
    Buffer.alloc((BLOCK_BYTES - (entry.bytes.length % BLOCK_BYTES)) % BLOCK_BYTES),
  ]);
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function headerOf({ name, bytes, mode }: Entry): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`;
  header.write(name, 0);
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(bytes.length, 11), 124);
  header.write(octal(0, 11), 136);
  header.write(' '.repeat(8), 148);
  header.write('0', 156);
  header.write('ustar\0' + '00', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

function packageOf(program: Buffer): Buffer {
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
  const text = (value: string) => Buffer.from(value);
  const entries: Entry[] = [
    { name: 'package/package.json', bytes: text(`${JSON.stringify(description, null, 2)}\n`), mode: 0o644 },
    { name: 'package/cloudlet.mjs', bytes: program, mode: 0o755 },
    { name: 'package/README.md', bytes: readFileSync(join(ROOT, 'cli/README.md')), mode: 0o644 },
    { name: 'package/LICENSE', bytes: readFileSync(join(ROOT, 'LICENSE')), mode: 0o644 },
  ];
  return gzipSync(tarOf(entries), { level: 9 });
}

/** Throws for a program that imports more than Node: users have nothing else. */
function assertAlone(built: Awaited<ReturnType<typeof build>>): void {
  const outputs = [built].flat().flatMap((each) => ('output' in each ? each.output : []));
  const imported = outputs.flatMap((each) => (each.type === 'chunk' ? each.imports : []));
  const foreign = imported.filter((name) => !name.startsWith('node:'));
  if (foreign.length > 0) throw new Error(`the client must not import ${foreign.join(', ')}`);
}

/** Builds both files. `stamp`: of what they are built from. Throws what the bundler says. */
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
          // A library does nothing by being imported: what the client does not call stays out.
          treeshake: { moduleSideEffects: (id) => !id.includes('/libs/') },
          output: { entryFileNames: 'cloudlet.mjs', banner: '#!/usr/bin/env node', codeSplitting: false },
        },
      },
    });
    assertAlone(built);
    const program = join(folder, 'cloudlet.mjs');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'cloudlet.tgz'), packageOf(readFileSync(program)));
    rmSync(STAMP, { force: true });
    rmSync(TARGET, { recursive: true, force: true });
    renameSync(folder, TARGET);
    writeFileSync(STAMP, stamp);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) await buildCli(process.argv[2] ?? '');
