/** docs/databases/compatibility.md equals the answers of the engines on this host. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { COMPATIBILITY_PAGE, renderCompatibility } from '../../scripts/write-compatibility.ts';

/** The engines and their versions. */
const enginesOf = (page: string) => [...page.matchAll(/^## .*$/gm)].map(([heading]) => heading).join(', ');

test('the page on compatibility is up to date', async (t) => {
  const [there, now] = [readFileSync(COMPATIBILITY_PAGE, 'utf8'), await renderCompatibility()];
  if (enginesOf(there) !== enginesOf(now))
    return t.skip(`the page is about other versions than ${enginesOf(now)}`);
  assert.equal(there, now, 'run: node scripts/write-compatibility.ts');
});
