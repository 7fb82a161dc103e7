/**
 * Builds the console into build/console, each file also compressed. scripts/builds.js runs it if a
 * source has changed; `npm start` and `npm test` run that.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import scalar from '@scalar/fastify-api-reference';
import fastify from 'fastify';
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

/**
 * Writes the library of the API reference, which only /api/docs loads. Its package for Fastify contains the
 * script as a string and serves it, so we request it once. The package with the file needs 280 others.
 */
async function writeReference(folder: string): Promise<void> {
  const app = fastify();
  await app.register(scalar, { routePrefix: '/reference', configuration: { url: '/api/openapi.json' } });
  const { body, statusCode } = await app.inject('/reference/js/scalar.js');
  await app.close();
  if (statusCode !== 200) throw new Error('The package of the API reference has no script');
  const script = body.replace(/\n\/\/# sourceMappingURL=.*$/, '');
  const hash = createHash('sha256').update(script).digest('hex').slice(0, 8);
  writeFileSync(join(folder, `assets/scalar-${hash}.js`), script);
}

/** The stamp of its sources. */
const [stamp = ''] = process.argv.slice(2);
const folder = join(ROOT, `build/console-${process.pid}`);
try {
  writeSdkTypes();
  await build({
    root: join(ROOT, 'console'),
    logLevel: 'error',
    build: { outDir: folder, emptyOutDir: true },
  });
  await writeReference(folder);
  compress(folder);
  rmSync(STAMP, { force: true });
  rmSync(TARGET, { recursive: true, force: true });
  renameSync(folder, TARGET);
  writeFileSync(STAMP, stamp);
} finally {
  rmSync(folder, { recursive: true, force: true });
}
