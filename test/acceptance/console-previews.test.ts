/** Files looked at in the console: tables, and what changed between two versions. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf } from './console-kit.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open();
});
after(() => fixture?.close());

async function lookingAt(who: string, files: readonly (readonly [string, string])[]) {
  const page = await fixture.signedUp(who, '/storage');
  const client = await clientOf(fixture, page);
  await client.call('/api/buckets', { json: { name: `${who}-work`, versioning: true } });
  for (const [name, content] of files) await client.upload(`${who}-work`, name, content);
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.setViewportSize({ width: 1400, height: 900 });
  await page.goto(`${fixture.cloud.api}/storage/${who}-work`);
  return page;
}

test('a CSV file is a table with types that is sorted, however long, and its markup is text', {
  skip,
}, async () => {
  const lines = Array.from({ length: 40_000 }, (_, i) => `${(i * 7919) % 40_000};name ${i};2026-01-01`);
  const hostile = '"<img src=x onerror=document.title=`ran`>"';
  const page = await lookingAt('analyst', [
    ['long.csv', `number;name;day\n${lines.join('\n')}`],
    ['small.csv', `word,n\n${hostile},10\nb,9\n`],
  ]);
  await page.getByRole('link', { name: 'small.csv' }).click();
  const table = page.getByRole('dialog').getByRole('table');
  await table.getByText('<img src=x').waitFor();
  await page.getByRole('dialog').getByText('2 rows').waitFor();
  await assertAccessible(page, 'a table');
  const column = () => table.locator('tbody tr td:last-child').allTextContents();
  assert.deepEqual(await column(), ['10', '9']);
  await table.getByRole('button', { name: 'n number' }).click();
  assert.deepEqual(await column(), ['9', '10']);
  await page.getByRole('link', { name: 'long.csv' }).click();
  await page.getByText('The first 1,000 rows.').waitFor();
  await table.getByRole('columnheader', { name: 'number number' }).waitFor();
  await table.getByRole('columnheader', { name: 'day date' }).waitFor();
  assert.doesNotMatch(await page.title(), /ran/);
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});

test('an earlier version of a text is compared with the current one', { skip }, async () => {
  const page = await lookingAt('editor', [
    ['a.txt', 'one\ntwo\nthree'],
    ['a.txt', 'one\n<b>2</b>\nthree\nfour'],
  ]);
  await page.getByRole('link', { name: 'a.txt' }).click();
  await page.getByRole('tab', { name: 'Versions (2)' }).click();
  await page.getByRole('button', { name: 'Compare with current' }).click();
  const changes = page.getByRole('dialog', { name: 'Changes of a.txt' });
  await changes.locator('del').getByText('− two').waitFor();
  assert.deepEqual(await changes.locator('ins').allTextContents(), ['+ <b>2</b>', '+ four']);
  await assertAccessible(page, 'a comparison', '[aria-modal=true]');
  await page.keyboard.press('Escape');
  await changes.waitFor({ state: 'detached' });
  await page.getByRole('dialog', { name: 'a.txt' }).waitFor();
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});
