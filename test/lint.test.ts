/** The linter's rules that are ours to choose can go red: each is given a text that it must refuse. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const GROUP = 'Write the members plainly';

interface Sample {
  readonly path: string;
  readonly text: string;
  /** A part of what the linter says; undefined: nothing. */
  readonly said: string | undefined;
}

const SAMPLES: readonly Sample[] = [
  { path: 'server/group.ts', text: 'export const a = (b: number) => ({ ...{ b, c: 1 } });', said: GROUP },
  { path: 'test/group.test.ts', text: 'f({ a: 1, ...{ b: 2 } });', said: GROUP },
  {
    path: 'server/condition.ts',
    text: 'export const a = (b: object, c?: 1) => ({ ...b, ...(c === undefined ? {} : { c }) });',
    said: undefined,
  },
];

/** What the project's linter says of each file, all of which are looked at together. */
function lint(samples: readonly Sample[]): Map<string, string> {
  const folder = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  after(() => rmSync(folder, { recursive: true, force: true }));
  const { vcs: _, ...config } = JSON.parse(readFileSync(join(ROOT, 'biome.json'), 'utf8'));
  writeFileSync(join(folder, 'biome.json'), JSON.stringify(config));
  cpSync(join(ROOT, 'scripts/lint'), join(folder, 'scripts/lint'), { recursive: true });
  for (const { path, text } of samples) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), `${text}\n`);
  }
  const args = ['lint', '--reporter=json', '--diagnostic-level=warn', '--max-diagnostics=none'];
  const { stdout, stderr } = spawnSync(join(ROOT, 'node_modules/.bin/biome'), args, {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.notEqual(stdout, '', stderr);
  const said = new Map<string, string>();
  for (const { location, message } of JSON.parse(stdout).diagnostics) {
    said.set(location.path, `${said.get(location.path) ?? ''}${message}\n`);
  }
  return said;
}

describe('the linter', () => {
  const found = lint(SAMPLES);
  for (const { path, text, said } of SAMPLES) {
    test(`${said === undefined ? 'allows' : 'refuses'} in ${path}: ${text}`, () => {
      const own = found.get(path) ?? '';
      assert.ok(said === undefined ? own === '' : own.includes(said), own);
    });
  }
});
