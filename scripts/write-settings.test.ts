import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { renderSettings } from '../server/config/config.ts';
import { README, withSettings } from './write-settings.ts';

test("README's settings are those of server/config/config.ts", () => {
  const readme = readFileSync(README, 'utf8');
  const advice = 'run `node scripts/write-settings.ts` and commit README.md';
  assert.ok(withSettings(readme) === readme, `the table of settings in README.md is out of date: ${advice}`);
});

test('only what stands between the markers is replaced', () => {
  const readme = 'above\n<!-- settings -->\n| stale |\n<!-- /settings -->\nbelow\n';
  const table = renderSettings();
  assert.equal(withSettings(readme), `above\n<!-- settings -->\n${table}\n<!-- /settings -->\nbelow\n`);
  assert.match(table, /CLOUDLET_PORT/);
});

test('a README without its markers, or with too many, is refused', () => {
  const pair = '<!-- settings -->\n<!-- /settings -->\n';
  for (const text of ['', '<!-- settings -->', '<!-- /settings -->\n<!-- settings -->', pair + pair]) {
    assert.throws(() => withSettings(text), /needs one/);
  }
});
