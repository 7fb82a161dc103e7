/** Runs test files again, each in its own process, with other engines under the test clouds. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync } from 'node:fs';
import { basename, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

/** Files at a time, as in `npm test`. */
export const FILES_AT_ONCE = 3;

const FILE_MS = 900_000;
const SHOWN = 6000;

export interface Suites {
  /** `acceptance` or `faults`. */
  readonly folder: string;
  /** Names of the only files to run; default: all. */
  readonly only?: readonly string[];
  /** Names of files that cannot run in this way, with the reason. */
  readonly excluded?: Readonly<Record<string, string>>;
  /**
   * Variables that the harness reads: `TEST_METADATA_SERVER`, `TEST_BLOBS_BUCKET`. Requested when a file
   * starts.
   */
  readonly settings: () => Readonly<Record<string, string>>;
}

/** One test for each of these files. `SUITES=name,name` runs only these files. */
export function testWholeSuites({ folder, only, excluded = {}, settings }: Suites): void {
  const chosen = process.env.SUITES?.split(',') ?? only;
  const files = globSync(join(import.meta.dirname, '..', folder, '*.test.ts')).sort();
  const names = new Set(files.map(nameOf));
  const unknown = [...Object.keys(excluded), ...(only ?? [])].filter((name) => !names.has(name));
  if (unknown.length > 0) throw new Error(`there is no ${folder} test ${unknown.join(', ')}`);
  for (const file of files) {
    const name = nameOf(file);
    if (chosen !== undefined && !chosen.includes(name)) continue;
    test(name, { skip: excluded[name] ?? false }, () => assertPasses(file, settings()));
  }
}

function nameOf(file: string): string {
  return basename(file, '.test.ts');
}

async function assertPasses(file: string, settings: Readonly<Record<string, string>>): Promise<void> {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, ['--test', '--test-reporter=spec', file], {
    env: { ...env, ...settings },
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: FILE_MS,
  });
  const [stdout, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  const from = stdout.lastIndexOf('failing tests:');
  assert.equal(code, 0, from < 0 ? stdout.slice(-SHOWN) : stdout.slice(from, from + SHOWN));
  assert.match(stdout, /ℹ (pass|skipped) [1-9]/);
}
