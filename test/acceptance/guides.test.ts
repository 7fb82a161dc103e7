/** The guides that need no machine run as they are printed. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { runGuide } from './guides-kit.ts';

const skip = notInstalled('curl', 'jq', 'xxd');
const ROOT = new URL('../../', import.meta.url);
const GUIDES = ['docs/client.md', 'docs/databases.md', 'docs/operating.md', 'docs/recovery.md', 'docs/s3.md'];
const WITH_MACHINES = ['docs/machines.md', 'docs/billing.md', 'docs/webhooks.md'];

test('docs/tour.md runs as it is printed, in one shell, and leaves nothing', { skip }, () =>
  runGuide('docs/tour.md', ['object_not_found']),
);

for (const guide of GUIDES) {
  test(`${guide} runs as it is printed, in one shell, and leaves nothing`, { skip }, () => runGuide(guide));
}

test('every page with commands is run by a test', () => {
  const tested = new Set(['docs/tour.md', ...GUIDES, ...WITH_MACHINES]);
  const pages = globSync('docs/*.md', { cwd: ROOT });
  const untested = pages.filter(
    (page) => /^```sh$/m.test(readFileSync(new URL(page, ROOT), 'utf8')) && !tested.has(page),
  );
  assert.deepEqual(untested, []);
});
