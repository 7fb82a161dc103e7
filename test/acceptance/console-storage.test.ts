/** Storage in the console with user input, in a real browser. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { makeSetupLink } from '../harness/command.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, assertAsks, assertOpens, typeName } from './console-journey.ts';
import { axeFaults, ConsoleFixture, clientOf, dropFiles, PASSWORD, quiet, uploaded } from './console-kit.ts';
import { hostileFiles, hostileTags } from './hostile-files.ts';
import { bodyOf, fieldPart, filePart, rawForm, sendRaw } from './storage-kit.ts';

const skip = noBrowser;
const HOSTILE = '<img src=x onerror="document.title=`ran`"><b>bold.txt';

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open({ env: { CLOUDLET_ADMIN_KEY: '' } });
});
after(() => fixture?.close());

const row = (page: Page, name: string) => page.getByRole('link', { name, exact: true });

test('from the set-up link to a shared file: drop, version, restore, link', { skip }, async () => {
  const page = await fixture.newPage();
  await page.goto(await makeSetupLink(fixture.cloud.dataDir));
  await page.fill('#username', 'chief');
  await page.fill('#email', 'chief@example.org');
  await page.fill('#password', PASSWORD);
  await page.click('form > button');
  await page.getByRole('link', { name: 'Open the console' }).click();
  await page.getByText('First five minutes').waitFor();
  await dropFiles(page, { 'notes.txt': 'the first words' });
  await page.getByRole('heading', { name: 'uploads' }).waitFor();
  await uploaded(page, 1);
  await dropFiles(page, { 'notes.txt': 'other words' });
  await uploaded(page, 2);

  await row(page, 'notes.txt').click();
  const drawer = page.getByRole('dialog');
  await drawer.getByText('other words').waitFor();
  await drawer.getByRole('tab', { name: 'Versions (2)' }).click();
  await drawer.getByRole('button', { name: 'Restore' }).click();
  await drawer.getByText('the first words').waitFor();
  const remove = drawer.getByRole('button', { name: 'Delete version' }).first();
  const question = page.getByRole('dialog', { name: 'Delete this version?' });
  await remove.press('Enter');
  await question.getByRole('button', { name: 'Cancel' }).and(page.locator(':focus')).press('Enter');
  await question.waitFor({ state: 'detached' });
  await drawer.getByRole('tab', { name: 'Versions (3)' }).waitFor();
  await remove.click();
  await question.getByRole('button', { name: 'Delete version' }).click();
  await drawer.getByRole('tab', { name: 'Versions (2)' }).waitFor();

  await drawer.getByRole('tab', { name: 'Share' }).click();
  await drawer.getByRole('button', { name: 'Create link' }).click();
  const link = await drawer.getByLabel('Link', { exact: true }).inputValue();
  await drawer.getByRole('img', { name: 'QR code of the link' }).waitFor();
  assert.equal(await (await fetch(link)).text(), 'the first words');

  await page.goto(`${fixture.cloud.api}/storage`);
  await page.getByRole('row', { name: 'uploads' }).getByRole('cell', { name: 'free' }).waitFor();
  await page.goto(fixture.cloud.api);
  await page.getByText('1 of 5 done').waitFor();
  await page.close();
});

test('folders, search, deep links and deleting with undo', { skip }, async () => {
  const page = await fixture.signedUp('folders', '/storage');
  await dropFiles(page, { 'top.txt': 'a', 'year/2026/may.txt': 'b', 'year/2025/june.txt': 'c' });
  await uploaded(page, 3);
  await row(page, 'year').click();
  await row(page, '2026').click();
  await row(page, 'may.txt').waitFor();
  assert.match(page.url(), /prefix=year%2F2026%2F/);
  await page.reload();
  await row(page, 'may.txt').waitFor();
  await page.getByRole('navigation', { name: 'Folders' }).getByRole('link', { name: 'uploads' }).click();
  await assertOpens(page, 'More upload options');
  await page.setViewportSize({ width: 1100, height: 720 });
  await assertOpens(page, 'top.txt');
  await assertAsks(page, 'Actions for uploads', 'Delete bucket');
  await page.getByLabel('Search by name').fill('JUNE');
  await row(page, 'year/2025/june.txt').waitFor();
  await page.goBack();

  await page.goto(`${fixture.cloud.api}/storage/uploads`);
  await page.getByLabel('Select top.txt').check();
  await page.getByRole('button', { name: 'Delete' }).click();
  await row(page, 'top.txt').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Undo' }).click();
  await row(page, 'top.txt').waitFor();
  await page.getByRole('button', { name: 'Undo' }).waitFor({ state: 'detached' });
  await page.getByLabel('Select year').check();
  await page.getByRole('button', { name: 'Delete' }).click();
  await row(page, 'year').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Undo' }).click();
  await row(page, 'year').click();
  await row(page, '2026').click();
  await row(page, 'may.txt').waitFor();
  await page.close();
});

test('a folder is sorted by the cloud, a path is typed, and what was deleted comes back', {
  skip,
}, async () => {
  const page = await fixture.signedUp('tidy', '/storage');
  await dropFiles(page, {
    'b.txt': 'bb',
    'a.txt': 'aaa',
    'c.txt': 'c',
    'year/may.txt': 'm',
    'year/june.txt': 'j',
  });
  await uploaded(page, 5);
  const names = (wanted: string) =>
    eventually(`the rows are ${wanted}`, async () => {
      const links = await page.getByRole('table', { name: 'Objects' }).getByRole('link').allInnerTexts();
      return links.join(' ') === wanted;
    });
  await names('year a.txt b.txt c.txt');
  await page.getByRole('button', { name: 'Size' }).click();
  await page.waitForURL(/sort=size/);
  await names('year a.txt b.txt c.txt');
  await page.getByRole('button', { name: 'Size' }).click();
  await names('year c.txt b.txt a.txt');
  await page.reload();
  await names('year c.txt b.txt a.txt');
  await page.getByRole('button', { name: 'Name' }).click();
  await page.getByRole('button', { name: 'Name' }).click();
  await names('year c.txt b.txt a.txt');

  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download folder as ZIP' }).click();
  const zip = await download;
  assert.equal(zip.suggestedFilename(), 'uploads.zip');
  const content = readFileSync(await zip.path(), 'latin1');
  for (const name of ['uploads/year/may.txt', 'uploads/c.txt']) assert.ok(content.includes(name));

  await page.getByLabel('Select b.txt').check();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  await names('year c.txt a.txt');
  await page.getByRole('switch', { name: 'Deleted files' }).click();
  await names('b.txt');
  await page.getByRole('button', { name: 'Restore b.txt' }).click();
  await page.getByText('No deleted files').waitFor();
  await page.getByRole('switch', { name: 'Deleted files' }).click();
  await names('year a.txt b.txt c.txt');

  await page.getByRole('button', { name: 'Edit path' }).click();
  await page.getByLabel('Path').fill('uploads/year/june.txt');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByText('june.txt').first().waitFor();
  await page.keyboard.press('Escape');
  await names('june.txt may.txt');
  await page.getByRole('button', { name: 'Edit path' }).click();
  await page.getByLabel('Path').fill('nowhere-at-all');
  await page.keyboard.press('Enter');
  await page.getByText('You have no bucket named nowhere-at-all').waitFor();
  await page.close();
});

test('names and content with markup are text', { skip }, async () => {
  const page = await fixture.signedUp('hostile', '/storage');
  await dropFiles(page, { [HOSTILE]: '<script>document.title="ran"</script>' });
  await uploaded(page, 1);
  await row(page, HOSTILE).click();
  const drawer = page.getByRole('dialog');
  await drawer.getByText('<script>document.title="ran"</script>').waitFor();
  assert.equal(await page.locator('b, img[src=x]').count(), 0);
  await page.keyboard.press('Escape');
  await drawer.waitFor({ state: 'detached' });
  await assertAsks(page, 'Actions for uploads', 'Disable versioning');
  await page.getByText('versioned', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Actions for uploads' }).click();
  await page.getByRole('menuitem', { name: 'Disable versioning' }).click();
  const asked = page.getByRole('dialog', { name: 'Disable versioning for uploads?' });
  await asked.getByRole('button', { name: 'Disable versioning' }).click();
  await page.getByText('Versioning was disabled for uploads').waitFor();
  await page.getByText('versioned', { exact: true }).waitFor({ state: 'detached' });
  await page.getByRole('checkbox', { name: `Select ${HOSTILE}` }).check();
  await assertAsks(page, 'Delete');
  await page.getByRole('button', { name: 'Actions for uploads' }).click();
  await page.getByRole('menuitem', { name: 'Delete bucket' }).click();
  await typeName(page, 'uploads');
  await page.getByText('Bucket uploads was deleted').waitFor();
  assert.doesNotMatch(await page.title(), /ran/);
  await page.close();
});

test('no file runs a script, calls the cloud or asks another host when it is looked at', {
  skip,
}, async (context) => {
  const asked: string[] = [];
  const elsewhere = createServer(({ url = '' }, response) => {
    asked.push(url);
    response.end('elsewhere');
  });
  context.after(() => elsewhere.closeAllConnections());
  context.after(() => elsewhere.close());
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  const host = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}`;
  const page = await fixture.signedUp('victim', '/storage');
  const client = await clientOf(fixture, page);
  await client.call('/api/buckets', { json: { name: 'hostile' } });
  const preview = page.getByRole('region', { name: 'Preview' });
  for (const { name, type, content, seen } of hostileFiles(host)) {
    const metadata = JSON.stringify({ [hostileTags(host)]: hostileTags(host) });
    const form = rawForm(
      fieldPart('name', name),
      fieldPart('metadata', metadata),
      filePart(content, 'a', type),
    );
    const { object_id } = bodyOf(await sendRaw(client, 'hostile', form));
    await page.goto(`${fixture.cloud.api}/storage/hostile?object=${object_id}`);
    await seen(preview, page);
    await page.getByRole('dialog').getByText('<script>').last().waitFor();
    await quiet(page);
    assert.doesNotMatch(await page.title(), /ran/, name);
  }
  assert.deepEqual(asked, []);
  assert.deepEqual((await client.call('/api/account/access-keys')).body, []);

  // The only exit is a link that is followed, to a page that knows nothing of this one.
  await page.goto(`${fixture.cloud.api}/storage/hostile`);
  await row(page, 'README.md').click();
  const words = preview.frameLocator('iframe');
  await words.getByRole('heading', { name: 'A page of words' }).waitFor();
  const made = (await preview.locator('iframe').getAttribute('srcdoc')) ?? '';
  assert.deepEqual(
    made.match(/<(?:a|img|script|style|iframe|form|object|svg|link|base)\b[^>]*>/gi)?.slice(1),
    [`<a href="${host}/page" target="_blank" rel="noopener noreferrer">`],
  );
  const opening = page.waitForEvent('popup');
  await words.getByRole('link').click();
  const opened = await opening;
  await opened.getByText('elsewhere').waitFor();
  assert.equal(await opened.evaluate('window.opener'), null);
  await opened.close();
  await page.close();
});

test('type and metadata are changed where they stand; what has no preview says why', { skip }, async () => {
  const page = await fixture.signedUp('labeller', '/storage');
  const client = await clientOf(fixture, page);
  await client.call('/api/buckets', { json: { name: 'labels' } });
  const metadata = JSON.stringify({ camera: 'X100', lens: { mm: 23 }, old: 'gone' });
  const { object_id } = bodyOf(await client.upload('labels', 'photo.txt', 'words', { metadata }));
  await page.goto(`${fixture.cloud.api}/storage/labels?object=${object_id}`);
  const drawer = page.getByRole('dialog');
  await drawer.getByRole('button', { name: 'Edit type and metadata' }).click();
  await drawer.getByRole('textbox', { name: 'Type' }).fill('no type');
  await drawer.getByRole('button', { name: 'Remove old' }).click();
  await drawer.getByLabel('Value').first().fill('<b>X200</b>');
  await drawer.getByRole('button', { name: 'Add key' }).click();
  await drawer.getByLabel('Key').last().fill('place');
  await drawer.getByLabel('Value').last().fill('42');
  await drawer.getByRole('button', { name: 'Save' }).click();
  await drawer.getByText('must be a media type such as').waitFor();
  assert.deepEqual(await axeFaults(page), []);
  await drawer.getByRole('textbox', { name: 'Type' }).fill('text/markdown');
  await drawer.getByRole('button', { name: 'Save' }).click();
  await drawer.getByRole('button', { name: 'Edit type and metadata' }).waitFor();
  await drawer.getByText('<b>X200</b>').waitFor();
  const record = bodyOf(await client.call(`/api/storage/${object_id}`));
  assert.equal(record.mime_type, 'text/markdown');
  assert.deepEqual(record.metadata, { camera: '<b>X200</b>', lens: { mm: 23 }, place: '42' });

  // Another user is faster, and the page reloads it while the form is open.
  await drawer.getByRole('button', { name: 'Edit type and metadata' }).click();
  const json = { metadata: { by: 'somebody else' } };
  bodyOf(await client.call(`/api/storage/${object_id}`, { method: 'PATCH', json }));
  const reading = page.waitForResponse(
    (answer) => answer.url().endsWith(`/${object_id}`) && answer.request().method() === 'GET',
  );
  await dropFiles(page, { 'beside.txt': 'words' });
  await reading;
  await drawer.getByRole('button', { name: 'Save' }).click();
  await drawer.getByText(/The current version is not the one you specified/).waitFor();
  assert.deepEqual(bodyOf(await client.call(`/api/storage/${object_id}`)).metadata, json.metadata);
  for (const [content, words] of [
    ['', 'This file is empty.'],
    ['x'.repeat(600_000), 'Only text files up to 512 KB are previewed. Download the file to view it.'],
  ] as const) {
    const other = bodyOf(await client.upload('labels', 'other.txt', content));
    await page.goto(`${fixture.cloud.api}/storage/labels?object=${other.object_id}`);
    await drawer.getByText(words).waitFor();
  }
  await page.close();
});

test('a session that ended leads to the sign-in page and back', { skip }, async () => {
  const page = await fixture.signedUp('forgetful', '/storage');
  await page.context().clearCookies();
  await page.getByRole('link', { name: 'Account' }).click();
  await page.getByText('Your session ended').waitFor();
  await page.getByLabel('User name or e-mail address').fill('forgetful');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
  await page.close();
});

test('a refusal is shown with its reason, at its field', { skip }, async () => {
  const page = await fixture.signedUp('curious', '/storage?create=true');
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').fill('No Bucket');
  await form.getByRole('button', { name: 'Create bucket' }).click();
  await form.getByText(/^A bucket name has 3 to 63/).waitFor();
  await form.getByLabel('Name').fill('good-name');
  await form.getByRole('button', { name: 'Create bucket' }).click();
  await page.getByRole('heading', { name: 'good-name' }).waitFor();
  await page.close();
});

test('two refusals at once are both shown, each at its field', { skip }, async () => {
  const page = await fixture.signedUp('hasty', '/account?create=key');
  const form = page.getByRole('dialog');
  await form.getByLabel('Name').fill('x'.repeat(101));
  const buckets = form.getByLabel('Buckets');
  await buckets.first().fill('ab');
  await buckets.first().press('Enter');
  await form.getByRole('button', { name: 'Create access key' }).click();
  await form.locator('.mantine-InputWrapper-error').nth(1).waitFor();
  assert.equal(await form.getByRole('alert').count(), 0);
  await page.close();
});

test('a folder of 700 objects keeps few rows in the page, and its place while one of them is open', {
  skip,
}, async () => {
  const page = await fixture.signedUp('collector', '/storage');
  const client = await clientOf(fixture, page);
  await client.call('/api/buckets', { json: { name: 'many' } });
  const names = Array.from({ length: 700 }, (_, i) => `file-${String(i).padStart(4, '0')}`);
  for (let at = 0; at < names.length; at += 100) {
    await Promise.all(names.slice(at, at + 100).map((name) => client.upload('many', name, 'x')));
  }
  await page.goto(`${fixture.cloud.api}/storage/many`);
  await row(page, 'file-0000').waitFor();
  await eventually('the last row is there', async () => {
    await page.evaluate('window.scrollTo(0, document.body.scrollHeight)');
    return row(page, 'file-0699').isVisible();
  });
  assert.ok((await page.getByRole('row').count()) < 100);
  await row(page, 'file-0699').click();
  await page.getByRole('dialog').getByRole('tab', { name: 'Share' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await row(page, 'file-0699').waitFor();
  await page.close();
});

test('no accessibility fault, in both themes', { skip }, async () => {
  const page = await fixture.signedUp('reader', '/storage');
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await dropFiles(page, { 'notes.txt': 'words' });
  await uploaded(page, 1);
  await assertAccessible(page, 'files');
  await page.getByRole('button', { name: 'Edit path' }).click();
  await assertAccessible(page, 'path');
  await page.keyboard.press('Escape');
  await page.getByRole('switch', { name: 'Deleted files' }).click();
  await page.getByText('No deleted files').waitFor();
  await assertAccessible(page, 'deleted files');
  await page.goBack();
  await row(page, 'notes.txt').click();
  for (const tab of ['Versions (1)', 'Share', 'Details']) {
    await page.getByRole('tab', { name: tab }).click();
    await assertAccessible(page, tab);
  }
  for (const [path, words] of [
    ['/', 'First five minutes'],
    ['/storage', 'Buckets hold your files'],
    ['/storage?create=true', 'Versioning'],
    ['/none/such', 'Page not found'],
    ['/sign-in', 'Welcome back'],
    ['/sign-up', 'free credits'],
  ] as const) {
    await page.goto(fixture.cloud.api + path);
    await page.getByText(words).first().waitFor();
    await assertAccessible(page, path);
  }
  await page.close();
});

test('the browser had nothing to complain of, and asked no other host', { skip }, () => {
  assert.deepEqual(fixture.complaints, []);
});
