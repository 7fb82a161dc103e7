/**
 * Work with files in the console: select, rename, move, copy, delete, with the mouse and with the keyboard
 * only.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Client } from '../harness/client.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, assertOpens } from './console-journey.ts';
import { ConsoleFixture, clientOf } from './console-kit.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open();
});
after(() => fixture?.close());

/** A user who looks at the bucket `work`, and the API as that user. */
async function lookingAt(who: string, files: Readonly<Record<string, string>>, versioning = true) {
  const page = await fixture.signedUp(who, '/storage');
  const client = await clientOf(fixture, page);
  for (const json of [{ name: `${who}-work`, versioning }, { name: `${who}-other` }])
    assert.equal((await client.call('/api/buckets', { json })).status, 201);
  for (const [name, content] of Object.entries(files)) await client.upload(`${who}-work`, name, content);
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.goto(`${fixture.cloud.api}/storage/${who}-work`);
  await page.getByRole('table', { name: 'Objects' }).getByRole('link').first().waitFor();
  return { page, client, work: `${who}-work`, other: `${who}-other` };
}

const link = (page: Page, name: string) => page.getByRole('link', { name, exact: true });
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const focused = (page: Page) => page.locator(':focus');

async function stored(client: Client, bucket: string): Promise<string> {
  const { body } = await client.call(`/api/buckets/${bucket}/files`);
  return body.map(({ name }: { name: string }) => name).join(' ');
}

async function textOf(client: Client, bucket: string, name: string): Promise<string> {
  const { body } = await client.call(`/api/buckets/${bucket}/files?prefix=${encodeURIComponent(name)}`);
  const { body: content } = await client.call(`/api/storage/${body[0].id}/download`);
  return String(content);
}

const becomes = (client: Client, bucket: string, wanted: string) =>
  eventually(`${bucket} has ${wanted}`, async () => (await stored(client, bucket)) === wanted);

test('keys alone choose files, rename one, and delete after a question', { skip }, async () => {
  const files = { 'a.txt': 'a', 'b.txt': 'b', 'c.txt': 'c', 'd.txt': 'd', 'year/may.txt': 'm' };
  const { page, client, work } = await lookingAt('typist', files);
  await link(page, 'a.txt').focus();
  await page.keyboard.press('ArrowDown');
  await focused(page).and(link(page, 'b.txt')).waitFor();
  await page.keyboard.press('F2');
  const rename = page.getByRole('dialog', { name: 'Rename b.txt' });
  await focused(page).and(rename.getByLabel('Name')).waitFor();
  await assertAccessible(page, 'rename', '[role=dialog]');
  // The name is selected without its extension.
  await page.keyboard.type('bees');
  await page.keyboard.press('Enter');
  await link(page, 'bees.txt').waitFor();
  await becomes(client, work, 'a.txt bees.txt c.txt d.txt year/may.txt');
  await button(page, 'Undo').click();
  await link(page, 'b.txt').waitFor();
  await becomes(client, work, 'a.txt b.txt c.txt d.txt year/may.txt');

  await link(page, 'a.txt').focus();
  await page.keyboard.press('Shift+ArrowDown');
  await page.keyboard.press('Shift+ArrowDown');
  await page.getByText('3 selected').waitFor();
  await page.keyboard.press('x');
  await page.getByText('2 selected').waitFor();
  await page.keyboard.press('Control+Space');
  await page.getByText('3 selected').waitFor();
  await page.keyboard.press('x');
  await page.getByText('2 selected').waitFor();
  await page.keyboard.press('Delete');
  const question = page.getByRole('dialog', { name: 'Delete 2 files?' });
  await focused(page)
    .and(question.getByRole('button', { name: 'Cancel' }))
    .waitFor();
  await question.getByText('deleted files can be restored').waitFor();
  await assertAccessible(page, 'delete', '[role=dialog]');
  await page.keyboard.press('Enter');
  await question.waitFor({ state: 'detached' });
  await focused(page).and(link(page, 'c.txt')).waitFor();
  assert.equal(await stored(client, work), 'a.txt b.txt c.txt d.txt year/may.txt');
  await page.keyboard.press('Delete');
  await question.getByRole('button', { name: 'Delete' }).press('Enter');
  await becomes(client, work, 'c.txt d.txt year/may.txt');

  await link(page, 'c.txt').focus();
  await page.keyboard.press('Control+a');
  await page.getByText('3 selected').waitFor();
  await page.keyboard.press('Escape');
  await page.getByText('3 selected').waitFor({ state: 'detached' });
  await page.close();
});

test('a range is moved to a folder, a folder is renamed, and a copy goes to another bucket', {
  skip,
}, async () => {
  const files = { '1.txt': '1', '2.txt': '2', '3.txt': '3', '4.txt': '4', 'old/in/x.txt': 'x' };
  const { page, client, work, other } = await lookingAt('mover', files);
  await page.getByLabel('Select 1.txt').click();
  await page.getByLabel('Select 3.txt').click({ modifiers: ['Shift'] });
  await page.getByText('3 selected').waitFor();
  await assertAccessible(page, 'the bar');
  await page.getByLabel('Select 2.txt').uncheck();
  await button(page, 'Move').click();
  const move = page.getByRole('dialog', { name: 'Move 2 items' });
  await focused(page).and(move.getByLabel('Folder')).waitFor();
  await assertAccessible(page, 'move', '[role=dialog]');
  assert.ok(await move.getByRole('button', { name: 'Move' }).isDisabled());
  await page.keyboard.type('/odd/numbers');
  await page.keyboard.press('Enter');
  await becomes(client, work, '2.txt 4.txt odd/numbers/1.txt odd/numbers/3.txt old/in/x.txt');
  await link(page, 'odd').waitFor();

  await page.getByLabel('Actions for old').click();
  await page.getByRole('menuitem', { name: 'Rename' }).click();
  await page.getByRole('dialog', { name: 'Rename old' }).getByLabel('Name').fill('new');
  await page.keyboard.press('Enter');
  await link(page, 'new').waitFor();
  await becomes(client, work, '2.txt 4.txt new/in/x.txt odd/numbers/1.txt odd/numbers/3.txt');

  await page.getByLabel('Actions for new').click();
  await page.getByRole('menuitem', { name: 'Copy' }).click();
  const copy = page.getByRole('dialog', { name: 'Copy new' });
  await copy.getByLabel('Bucket').selectOption(other);
  await copy.getByRole('button', { name: 'Copy' }).click();
  await becomes(client, other, 'new/in/x.txt');
  assert.match(await stored(client, work), /new\/in\/x\.txt/);

  await assertOpens(page, 'Actions for 2.txt', 'Move');
  await assertOpens(page, 'More upload options', 'New folder');
  await button(page, 'More upload options').click();
  await page.getByRole('menuitem', { name: 'New folder' }).click();
  await page.getByRole('dialog', { name: 'New folder' }).getByLabel('Name').fill('plans/2027');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: '2027' }).waitFor();
  await page.getByText('No files yet').waitFor();
  assert.match(page.url(), /prefix=plans%2F2027%2F/);
  await page.close();
});

test('a file that is there is replaced only after a question', { skip }, async () => {
  const files = { 'in/a.txt': 'kept', 'a.txt': 'new', 'b.txt': 'b' };
  const { page, client, work } = await lookingAt('careful', files, false);
  await page.getByLabel('Select all listed').check();
  await page.getByLabel('Select in').uncheck();
  const move = async () => {
    await button(page, 'Move').click();
    await page.getByRole('dialog').getByLabel('Folder').fill('in');
    await page.keyboard.press('Enter');
  };
  await move();
  const question = page.getByRole('dialog', { name: 'Replace this file?' });
  await focused(page)
    .and(question.getByRole('button', { name: 'Cancel' }))
    .waitFor();
  await question.getByText('already has in/a.txt').waitFor();
  await question.getByText('permanently deleted').waitFor();
  await assertAccessible(page, 'replace', '[role=dialog]');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal(await stored(client, work), 'a.txt in/a.txt in/b.txt');
  assert.equal(await textOf(client, work, 'in/a.txt'), 'kept');

  await page.getByLabel('Select a.txt').check();
  await move();
  await question.getByRole('button', { name: 'Replace' }).click();
  await becomes(client, work, 'in/a.txt in/b.txt');
  assert.equal(await textOf(client, work, 'in/a.txt'), 'new');
  await page.close();
});

test('chosen files and folders are one download, and their links are copied', { skip }, async () => {
  const files = { 'a.txt': 'a', 'b.txt': 'b', 'c.txt': 'c', 'year/may.txt': 'm' };
  const { page } = await lookingAt('collector', files);
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByLabel('Select all listed').check();
  await page.getByLabel('Select c.txt').uncheck();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    button(page, 'Download as ZIP').click(),
  ]);
  assert.equal(download.suggestedFilename(), 'collector-work.zip');
  const zip = readFileSync(await download.path()).toString('latin1');
  for (const [name, isIn] of [
    ['collector-work/a.txt', true],
    ['collector-work/year/may.txt', true],
    ['c.txt', false],
  ] as const)
    assert.equal(zip.includes(name), isIn, name);
  assert.equal(await button(page, 'Copy links').count(), 0, 'a folder has no address');
  await page.getByLabel('Select year').uncheck();
  await button(page, 'Copy links').click();
  await page.getByText('2 links copied').waitFor();
  const links = String(await page.evaluate('navigator.clipboard.readText()')).split('\n');
  const contents = await Promise.all(links.map(async (url) => (await fetch(url)).text()));
  assert.deepEqual(contents, ['a', 'b']);
  await page.close();
});

test('rows are dragged onto a folder and onto the path, and folders stand first', { skip }, async () => {
  const files = {
    '10.txt': 'x',
    '2.txt': 'y',
    'B.txt': 'b',
    'a.txt': 'a',
    'in/deep/d.txt': 'd',
    'zoo/z': 'z',
  };
  const { page, client, work } = await lookingAt('dragger', files);
  const shown = () => page.getByRole('table', { name: 'Objects' }).getByRole('link').allTextContents();
  assert.deepEqual(await shown(), ['in', 'zoo', '2.txt', '10.txt', 'a.txt', 'B.txt']);
  await page.getByLabel('Select 2.txt').check();
  await page.getByLabel('Select 10.txt').check();
  await link(page, '10.txt').dragTo(link(page, 'in'));
  await becomes(client, work, 'B.txt a.txt in/10.txt in/2.txt in/deep/d.txt zoo/z');
  await page.getByText('2 selected').waitFor({ state: 'detached' });
  await button(page, 'Undo').click();
  await becomes(client, work, '10.txt 2.txt B.txt a.txt in/deep/d.txt zoo/z');
  await link(page, '2.txt').waitFor();
  await link(page, 'zoo').dragTo(link(page, 'in'));
  await becomes(client, work, '10.txt 2.txt B.txt a.txt in/deep/d.txt in/zoo/z');
  await link(page, 'in').click();
  await link(page, 'zoo').dragTo(
    page.getByRole('navigation', { name: 'Folders' }).getByRole('link', { name: work }),
  );
  await becomes(client, work, '10.txt 2.txt B.txt a.txt in/deep/d.txt zoo/z');
  await page.goBack();
  await client.upload(work, 'in/a.txt', 'kept');
  await link(page, 'a.txt').dragTo(link(page, 'in'));
  await page.getByRole('dialog', { name: 'Replace this file?' }).waitFor();
  await page.keyboard.press('Escape');
  assert.equal(await textOf(client, work, 'in/a.txt'), 'kept');
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});

test('a file is shown beside the list, goes along with the arrows, and over it on a phone', {
  skip,
}, async () => {
  const files = { 'a.txt': 'content of a', 'b.txt': 'content of b', 'in/c.txt': 'c' };
  const { page } = await lookingAt('reader', files);
  await page.setViewportSize({ width: 1280, height: 800 });
  await link(page, 'a.txt').focus();
  await page.keyboard.press('Enter');
  const panel = page.getByRole('dialog', { name: 'a.txt' });
  await panel.getByText('content of a').waitFor();
  await assertAccessible(page, 'the panel');
  await focused(page).and(link(page, 'a.txt')).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.getByRole('dialog', { name: 'b.txt' }).getByText('content of b').waitFor();
  assert.equal(await page.locator('[aria-current=true][role=row]').count(), 1);
  await page.keyboard.press('F2');
  await page.getByRole('dialog', { name: 'Rename b.txt' }).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog', { name: 'Rename b.txt' }).waitFor({ state: 'detached' });
  await page.getByRole('dialog', { name: 'b.txt' }).waitFor();
  await focused(page).and(link(page, 'b.txt')).waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.doesNotMatch(page.url(), /object=/);
  await page.keyboard.press('Space');
  await page.getByRole('dialog', { name: 'b.txt' }).getByText('content of b').waitFor();
  await focused(page).and(link(page, 'b.txt')).waitFor();
  await page.keyboard.press('Space');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await focused(page).and(link(page, 'b.txt')).waitFor();
  assert.doesNotMatch(page.url(), /object=/);
  await page.setViewportSize({ width: 390, height: 800 });
  await link(page, 'a.txt').click();
  await page.locator('[role=dialog][aria-modal=true]').getByText('content of a').waitFor();
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});

test('all of it fits a phone, and markup in names stays text', { skip }, async () => {
  const hostile = '<img src=x onerror="document.title=`ran`">.txt';
  const { page, client, work } = await lookingAt('phone', { [hostile]: 'x', 'a.txt': 'a' });
  await page.setViewportSize({ width: 390, height: 800 });
  await page.getByLabel(`Select ${hostile}`).check();
  await page.getByText('1 selected').waitFor();
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
  await assertAccessible(page, 'a phone');
  await page.getByLabel(`Actions for ${hostile}`).click();
  await page.getByRole('menuitem', { name: 'Rename' }).click();
  const dialog = page.getByRole('dialog', { name: `Rename ${hostile}` });
  await dialog.getByLabel('Name').fill('a.txt');
  await page.keyboard.press('Enter');
  await page.getByText('The replaced content stays as an earlier version.').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal(await stored(client, work), `${hostile} a.txt`);
  assert.doesNotMatch(await page.title(), /ran/);
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});

test('the size of a folder is counted when one asks, and follows what changes', { skip }, async () => {
  const files = { 'big/a.txt': 'a'.repeat(2048), 'big/in/b.txt': 'b'.repeat(1024), 'c.txt': 'cc' };
  const { page, client, work } = await lookingAt('counter', files);
  const asked: string[] = [];
  page.on('request', (request) => {
    if (request.url().includes('/size')) asked.push(request.url());
  });
  const row = page.getByRole('row').filter({ has: link(page, 'big') });
  await page.getByLabel('Actions for big').click();
  assert.deepEqual(asked, []);
  await page.getByRole('menuitem', { name: 'Calculate size' }).click();
  await row.getByText(/^3(\.00)? KB$/).waitFor();
  assert.equal(await row.getByTitle('2 files').count(), 1);
  await client.upload(work, 'big/d.txt', 'd'.repeat(1024));
  // A change in the console is counted.
  await page.getByLabel('Actions for c.txt').click();
  assert.equal(await page.getByRole('menuitem', { name: 'Calculate size' }).count(), 0);
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await row.getByText(/^4(\.00)? KB$/).waitFor();
  await page.getByLabel('Select all listed').click();
  await page.getByText(/^4(\.00)? KB in 3 files$/).waitFor();
  await assertAccessible(page, 'the size of a selection');
  await page.close();
});
