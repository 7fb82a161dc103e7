/** Parts of the console that fail to load, and the password prompt over everything. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { askIn, axeFaults, ConsoleFixture, dropFiles, PASSWORD, uploaded } from './console-kit.ts';
import { FAKED_CLOCK, noFakedClock } from './faked-clock.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
const folder = mkdtempSync(join(tmpdir(), 'cloudlet-clock-'));
const clock = join(folder, 'clock');
before(async () => {
  writeFileSync(clock, '+0');
  const env = noFakedClock ? {} : { ...FAKED_CLOCK, FAKETIME_TIMESTAMP_FILE: clock };
  if (!skip) fixture = await ConsoleFixture.open({ env });
});
after(async () => {
  await fixture?.close();
  rmSync(folder, { recursive: true });
});

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
  assert.deepEqual(await axeFaults(page, '[role=dialog]'), []);
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

test('a session is asked for the password before a key is shown, replaced or made, once in 15 minutes', {
  skip: skip || noFakedClock,
}, async () => {
  const page = await fixture.signedUp('left-open', '/account');
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
  const set = (offset: string) => writeFileSync(clock, offset);
  await page.getByRole('heading', { name: 'API key', exact: true }).waitFor();
  set('+16m');
  await press('Replace API key');
  await page.getByRole('dialog').getByRole('button', { name: 'Replace API key' }).click();
  const question = page.getByRole('dialog', { name: 'Enter your password' });
  const field = question.getByLabel('Password', { exact: true });
  await field.and(page.locator(':focus')).fill('not this');
  await page.keyboard.press('Enter');
  await question.getByText('This password is incorrect').waitFor();
  await assertAccessible(page, 'the question for the password', '[role=dialog]');
  await field.fill(PASSWORD);
  await page.keyboard.press('Enter');
  await page.getByText('The API key was replaced').waitFor();
  set('+32m');
  await page.reload();
  await press('Show');
  await field.fill(PASSWORD);
  await page.keyboard.press('Enter');
  const shown = page.getByRole('region', { name: 'API key', exact: true }).locator('code');
  await shown.filter({ hasText: /^clk_\w{38}$/ }).waitFor();
  const entries = () => askIn(page, '/api/audit?action=getAccount') as Promise<readonly unknown[]>;
  await eventually('the key that is shown has an entry', async () => (await entries()).length > 0);
  assert.equal((await entries()).length, 1, 'pages that show no key do not ask for it');
  set('+48m');
  await press('Create access key');
  const form = page.getByRole('dialog', { name: 'Create access key' });
  await form.getByLabel('Name', { exact: true }).fill('outlives the session');
  await page.keyboard.press('Enter');
  await field.and(page.locator(':focus')).fill(PASSWORD);
  await page.keyboard.press('Enter');
  await form.getByText('outlives the session').or(form.locator('code')).first().waitFor();
});

test('an old session sees how to connect, and is asked for the password before that of a database', {
  skip: skip || noFakedClock,
}, async () => {
  const page = await fixture.signedUp('connects-late', '/databases');
  await page.getByRole('link', { name: 'Create database' }).first().click();
  await page.getByRole('button', { name: 'Create database' }).click();
  const press = () => page.getByRole('button', { name: 'Show password' }).click();
  await press();
  const line = page.locator('pre').filter({ hasText: '/db/db-' }).first();
  await page.getByText('It contains the password').waitFor();
  const uri = await line.innerText();
  writeFileSync(clock, '+64m');
  await page.reload();
  await page.getByText('The password is hidden').waitFor();
  assert.equal(await line.innerText(), uri.replace(/authToken=.*/, 'authToken=***'));
  await press();
  const question = page.getByRole('dialog', { name: 'Enter your password' });
  await question.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.keyboard.press('Enter');
  await page.getByText('It contains the password').waitFor();
  assert.equal(await line.innerText(), uri);
});

test('sessions of programs are folded, those of browsers are not', { skip }, async () => {
  const page = await fixture.signedUp('scripted', '/account');
  const login = { method: 'POST', headers: { 'content-type': 'application/json' } };
  const body = JSON.stringify({ username: 'scripted', password: PASSWORD });
  for (let script = 0; script < 4; script++) {
    assert.equal((await fetch(`${fixture.cloud.api}/api/login`, { ...login, body })).status, 200);
  }
  await page.reload();
  const rows = page.getByRole('region', { name: 'Active sessions' }).locator('tbody tr');
  const fold = page.getByRole('button', { name: 'Show 2 more sessions of programs' });
  await fold.waitFor();
  assert.equal(await rows.count(), 3);
  await fold.press('Enter');
  await fold.waitFor({ state: 'detached' });
  assert.equal(await rows.count(), 5);
  await page.close();
});
