import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

const BUILD = join(import.meta.dirname, '../build/server/current');

test('the built server is plain ASCII: one other letter doubles the memory that the text of its file takes', () => {
  const files = readdirSync(BUILD).filter((name) => name.endsWith('.js'));
  assert.ok(files.includes('main.js'));
  const others = files.filter((name) => /[^\0-\x7f]/.test(readFileSync(join(BUILD, name), 'latin1')));
  assert.deepEqual(others, []);
});
