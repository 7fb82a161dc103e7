/** Parts of the console that the browser fetches when they are shown, and that do not come. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { noBrowser } from './browser-kit.ts';
import { ConsoleFixture, dropFiles, seriousFaults, uploaded } from './console-kit.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open();
});
after(() => fixture?.close());

test('a part of the console that does not come is told in its place, and comes when it is tried again', {
  skip,
}, async () => {
  const page = await fixture.signedUp('unreached', '/storage');
  await dropFiles(page, { 'notes.txt': 'words' });
  await uploaded(page, 1);
  const navigation = page.getByRole('navigation', { name: 'Main' });
  const missing = page.getByText('A part of the console could not be loaded');
  await page.route('**/assets/**', (route) => route.abort());
  await page.getByRole('link', { name: 'notes.txt', exact: true }).click();
  const drawer = page.getByRole('dialog');
  await drawer.filter({ has: missing }).filter({ hasText: 'notes.txt' }).waitFor();
  assert.deepEqual(await seriousFaults(page, '[role=dialog]'), []);
  assert.equal(await navigation.isVisible(), true);
  assert.equal(
    await page.getByRole('button', { name: 'Upload', exact: true }).isVisible(),
    true,
    'the folder is there',
  );
  await page.unroute('**/assets/**');
  await drawer.getByRole('button', { name: 'Try again' }).click();
  await drawer.getByRole('tab', { name: 'Versions (1)' }).waitFor();
  await page.keyboard.press('Escape');

  await page.route('**/assets/**', (route) => route.abort());
  await page.getByRole('link', { name: 'Webhooks' }).click();
  await missing.waitFor();
  assert.equal(await navigation.isVisible(), true, 'one can go elsewhere');
  await page.unroute('**/assets/**');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('No webhooks yet').waitFor();
  await page.close();
});
