import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
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
