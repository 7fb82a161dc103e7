import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { lockDirectory } from './directory-lock.ts';

const MODULE = new URL('./directory-lock.ts', import.meta.url).href;

test('a second process is refused until the first is gone, killed or not', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-lock-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const script = `import { lockDirectory } from ${JSON.stringify(MODULE)};
    lockDirectory(${JSON.stringify(directory)}); console.log('held'); setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  assert.throws(() => lockDirectory(directory), /Another Cloudlet uses the data directory/);
  child.kill('SIGKILL');
  await once(child, 'exit');
  const lock = lockDirectory(directory);
  assert.throws(() => lockDirectory(directory), /Another Cloudlet/);
  lock.release();
  lockDirectory(directory).release();
});

test("what it keeps there is nobody else's to read, also when an older Cloudlet made it", (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'cloudlet-lock-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const modes = () =>
    readdirSync(directory).map((name) => [name, statSync(join(directory, name)).mode & 0o777]);
  const wanted = [
    ['lock', 0o600],
    ['lock-journal', 0o600],
  ];
  for (let times = 0; times < 2; times++) {
    const lock = lockDirectory(directory);
    assert.deepEqual(modes(), wanted);
    lock.release();
    chmodSync(join(directory, 'lock'), 0o644);
  }
});
