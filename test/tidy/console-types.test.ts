/** The type check of code for browsers and for the client; `tsc -p .` checks code for Node. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { writeSdkTypes } from '../../scripts/write-sdk.ts';

const ROOT = join(import.meta.dirname, '../..');

for (const project of ['sdk', 'console', 'cli']) {
  test(`${project}/ has no type errors`, () => {
    writeSdkTypes();
    const tsc = join(ROOT, 'node_modules/.bin/tsc');
    const { status, stdout } = spawnSync(tsc, ['-p', project, '--checkers', '1'], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    assert.equal(status, 0, stdout);
  });
}
