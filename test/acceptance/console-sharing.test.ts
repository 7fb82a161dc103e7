/** Shared links in the console: a folder is shared, opened without an account, and the link revoked. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf } from './console-kit.ts';
import { hostileTags } from './hostile-files.ts';

const skip = noBrowser;
const PASSWORD = 'open sesame';

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open();
});
after(() => fixture?.close());

test('a folder is shared with a password, opened, counted and ended by its page alone', {
  skip,
}, async () => {
  const page = await fixture.signedUp('sharer', '/storage');
  const user = await clientOf(fixture, page);
  await user.call('/api/buckets', { json: { name: 'trip' } });
  await user.upload('trip', 'days/<b>one & two.txt', 'sunny');
  await page.goto(`${fixture.cloud.api}/storage/trip`);
  await page.getByRole('button', { name: 'Actions for days' }).click();
  await page.getByRole('menuitem', { name: 'Share' }).click();
  const dialog = page.getByRole('dialog', { name: 'Share days' });
  await dialog.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await dialog.getByLabel('Maximum downloads').fill('2');
  await dialog.getByLabel('Maximum downloads').press('Enter');
  const url = await dialog.getByLabel('Link', { exact: true }).inputValue();
  await dialog.getByText('see and download everything in this folder').waitFor();
  await assertAccessible(page, 'sharing a folder', '[role=dialog]');

  const stranger = await page
    .context()
    .browser()
    ?.newContext({
      httpCredentials: { username: 'anybody', password: PASSWORD },
    });
  assert.ok(stranger);
  const shared = await stranger.newPage();
  const faults: string[] = [];
  shared.on('console', (message) => {
    if (message.type() === 'error' && !/401/.test(message.text())) faults.push(message.text());
  });
  await shared.goto(url);
  await shared.getByRole('heading', { name: 'days' }).waitFor();
  const download = shared.waitForEvent('download');
  await shared.getByRole('link', { name: 'Download all as a zip' }).click();
  assert.equal((await download).suggestedFilename(), 'days.zip');
  await shared.getByRole('link', { name: '<b>one & two.txt' }).click();
  await shared.getByText('sunny').waitFor();
  assert.deepEqual(faults, []);

  await page.goto(`${fixture.cloud.api}/storage/trip?tab=links`);
  const row = page.getByRole('row', { name: /days/ });
  await row.getByText('2 of 2').waitFor();
  await row.getByText('Used up').waitFor();
  await assertAccessible(page, 'shared links');
  await row.getByRole('button', { name: 'End link to days/' }).press('Enter');
  await page.getByText('No shared links').waitFor();
  await shared.goto(url);
  await shared.getByRole('heading', { name: 'This link does not work' }).waitFor();
  await stranger.close();
  await page.close();
});

test('hostile names stay text on the page of a shared folder', { skip }, async () => {
  const page = await fixture.signedUp('hostile', '/storage');
  const user = await clientOf(fixture, page);
  await user.call('/api/buckets', { json: { name: 'odd' } });
  for (const name of [
    hostileTags('http://127.0.0.1:9').replaceAll('\n', ' ').slice(0, 900),
    '"><script>1</script>',
  ])
    await user.upload('odd', name.replaceAll('/', '|'), 'x');
  const { body } = await user.call('/api/shares', { json: { bucket: 'odd', name: '' } });
  await page.goto(body.url);
  const shown = await eventually('the names', async () => {
    const links = await page.locator('td a').allTextContents();
    return links.length > 0 ? links : undefined;
  });
  assert.ok(shown.length > 0);
  assert.notEqual(await page.title(), 'ran');
  assert.equal(await page.locator('script, img, iframe').count(), 0);
  await page.close();
});
