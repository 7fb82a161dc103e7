import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { preparing, saysPreparing } from './preparing.ts';

test('what a living program prepares is seen, and what a dead one left is not', () => {
  const folder = mkdtempSync(join(tmpdir(), 'preparing-'));
  try {
    const note = (pid: number) =>
      writeFileSync(
        join(folder, 'mariadb.json'),
        JSON.stringify({ pid, percent: 40, step: 'fetching packages' }),
      );
    assert.equal(preparing('mariadb', folder), null);
    note(process.pid);
    const found = preparing('mariadb', folder);
    assert.deepEqual(found, { percent: 40, step: 'fetching packages' });
    assert.equal(preparing('postgresql', folder), null);
    note(spawnSync('sh', ['-c', ':']).pid);
    assert.equal(preparing('mariadb', folder), null);
    writeFileSync(join(folder, 'mariadb.json'), '{"pid":');
    assert.equal(preparing('mariadb', folder), null);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('it is said how far it is', () => {
  assert.equal(
    saysPreparing({ percent: 40, step: 'fetching packages' }),
    'it is being installed: fetching packages (40 %)',
  );
  assert.equal(saysPreparing({ percent: null, step: 'waiting' }), 'it is being installed: waiting');
});
