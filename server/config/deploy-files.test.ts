/** The files of deploy/ name settings that exist. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SETTINGS } from './settings.ts';

const FOLDER = fileURLToPath(new URL('../../deploy/', import.meta.url));
/** Placeholders of the proxies' recipes. */
const OF_PROXIES = ['CLOUDLET_API', 'CLOUDLET_API_PORT', 'CLOUDLET_DATA'];

test('each setting that a file of deploy/ names exists', () => {
  const known = new Set([...Object.values(SETTINGS).map(({ env }) => env), ...OF_PROXIES]);
  const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' }).filter((name) =>
    statSync(join(FOLDER, name)).isFile(),
  );
  let count = 0;
  for (const name of files) {
    for (const [setting] of readFileSync(join(FOLDER, name), 'utf8').matchAll(/CLOUDLET_[A-Z0-9_]+/g)) {
      assert.ok(known.has(setting), `${name}: ${setting}`);
      count++;
    }
  }
  assert.ok(count > 30);
});
