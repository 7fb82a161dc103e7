/** Parts of the console that do not come: told in their place, and had by trying again. */
import { after, before, test } from 'node:test';
import { noBrowser } from './browser-kit.ts';
import { ConsoleFixture, dropFiles, uploaded } from './console-kit.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open();
});
after(() => fixture?.close());

test('a part of the console that does not come is told, and comes when it is tried again', {
  skip,
}, async () => {
  const page = await fixture.signedUp('unreached', '/storage');
  await page.route('**/assets/**', (route) => route.abort());
  await page.getByRole('link', { name: 'Webhooks' }).click();
  await page.getByText('A part of the console did not come').waitFor();
  await page.unroute('**/assets/**');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByText('No webhooks yet').waitFor();
  await page.close();
});

test('a part of a page that does not come is told in its place, and leaves the rest', {
  skip,
}, async () => {
  const page = await fixture.signedUp('unreached-2', '/storage');
  await dropFiles(page, { 'a.txt': 'words' });
  await uploaded(page, 1);
  await page.route('**/assets/**', (route) => route.abort());
  await page.getByRole('link', { name: 'a.txt', exact: true }).click();
  await page.getByText('A part of the console did not come').waitFor();
  await page.getByRole('checkbox', { name: 'Choose a.txt' }).check();
  await page.unroute('**/assets/**');
  await page.getByRole('button', { name: 'Try again' }).click();
  await page.getByRole('dialog').getByText('words').waitFor();
  await page.close();
});
