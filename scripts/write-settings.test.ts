import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { renderSettings } from '../server/config/config.ts';
import { SETTINGS_PAGE, withSettings } from './write-settings.ts';

test('the settings page has those of server/config/config.ts', () => {
  const page = readFileSync(SETTINGS_PAGE, 'utf8');
  const advice = 'run `node scripts/write-settings.ts` and commit docs/settings.md';
  assert.ok(
    withSettings(page) === page,
    `the table of settings in docs/settings.md is out of date: ${advice}`,
  );
});

test('only what stands between the markers is replaced', () => {
  const readme = 'above\n<!-- settings -->\n| stale |\n<!-- /settings -->\nbelow\n';
  const table = renderSettings();
  assert.equal(withSettings(readme), `above\n<!-- settings -->\n${table}\n<!-- /settings -->\nbelow\n`);
  assert.match(table, /CLOUDLET_PORT/);
});

test('a page without its markers, or with too many, is refused', () => {
  const pair = '<!-- settings -->\n<!-- /settings -->\n';
  for (const text of ['', '<!-- settings -->', '<!-- /settings -->\n<!-- settings -->', pair + pair]) {
    assert.throws(() => withSettings(text), /must contain one <!-- settings -->/);
  }
});
