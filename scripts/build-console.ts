/**
 * Builds the console into build/console, each file also compressed. scripts/builds.js runs it when a
 * source changed, and that at `npm start` and `npm test`.
 */
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';
import { writeSdkTypes } from './write-sdk.ts';

const ROOT = join(import.meta.dirname, '..');
const TARGET = join(ROOT, 'build/console');
const STAMP = join(ROOT, 'build/console.stamp');
/** Smaller files gain nothing. */
const COMPRESSED_MIN_BYTES = 512;

function compress(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !/\.(?:js|css|svg)$/.test(entry.name)) continue;
    const path = join(entry.parentPath, entry.name);
    const bytes = readFileSync(path);
    if (bytes.length < COMPRESSED_MIN_BYTES) continue;
    // Level 11 costs ten times the seconds for a twentieth of the bytes.
    const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params }));
    writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
  }
}

/** The stamp of what it is built from. */
const [stamp = ''] = process.argv.slice(2);
const folder = join(ROOT, `build/console-${process.pid}`);
try {
  writeSdkTypes();
  await build({
    root: join(ROOT, 'console'),
    logLevel: 'error',
    build: { outDir: folder, emptyOutDir: true },
  });
  compress(folder);
  rmSync(STAMP, { force: true });
  rmSync(TARGET, { recursive: true, force: true });
  renameSync(folder, TARGET);
  writeFileSync(STAMP, stamp);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
