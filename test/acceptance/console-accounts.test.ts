/** Accounts of a cloud without registration: who gets one, and password resets. In a real browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, PASSWORD } from './console-kit.ts';

const skip = noBrowser;
const PATIENCE_MS = 120_000;
const username = 'guest';

let fixture: ConsoleFixture;
let page: Page;
let user: CheckedClient;
before(async () => {
  if (skip) return;
  fixture = await ConsoleFixture.open({ env: { CLOUDLET_REGISTRATION: 'closed' } });
  const admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
  const chief = { username: 'chief', email: 'chief@example.org', password: PASSWORD, is_admin: true };
  await admin.expect(201, '/api/admin/accounts', { json: chief });
  const guest = { username, email: 'guest@example.org' };
  const { api_key } = await admin.expect(201, '/api/admin/accounts', { json: guest });
  user = admin.as(api_key);
  page = await fixture.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
});
after(() => fixture?.close());

const open = (path: string) => page.goto(fixture.cloud.api + path);
const press = (name: string) => page.getByRole('button', { name, exact: true }).click();

test('who would register is told whom to ask', { skip }, async () => {
  const json = { username: 'someone', email: 'someone@example.org', password: PASSWORD };
  const anyone = user.as(undefined);
  const refusal = await anyone.refused(403, 'registration_closed', ['/api/register', { json }]);
  assert.match(refusal.hint, /administrator/);
  assert.equal((await anyone.expect(200, '/api')).registration, 'closed');
  const index = await fetch(`${fixture.cloud.api}/api`, { headers: { accept: 'text/html' } });
  assert.doesNotMatch(await index.text(), /\/api\/register/);
  await open('/sign-up');
  await page.getByRole('heading', { name: 'Registration is closed' }).waitFor();
  await page.getByText('Ask the administrator for an account.').waitFor();
  assert.equal(await page.getByLabel('E-mail address').count(), 0);
  await assertAccessible(page, '/sign-up');
  await page.getByRole('link', { name: 'Sign in' }).click();
  await page.getByText('Ask the administrator of this cloud for an account.').waitFor();
  assert.equal(await page.getByRole('link', { name: 'Create an account' }).count(), 0);
  await page.getByLabel('User name').fill('chief');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await press('Sign in');
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
});

test('a forgotten password is set anew with a link that an administrator gives', { skip }, async () => {
  await open('/administration?tab=accounts');
  await press(`Actions for ${username}`);
  await page.getByRole('menuitem', { name: 'Reset link' }).click();
  const shown = page.getByRole('dialog', { name: `Reset link of ${username}` });
  await shown.getByRole('button', { name: 'Copy link' }).waitFor();
  await assertAccessible(page, 'the reset link');
  const link = String(await shown.locator('pre').textContent());
  await page.keyboard.press('Escape');
  await shown.waitFor({ state: 'detached' });

  const forgetful = await fixture.newPage();
  const sent: string[] = [];
  forgetful.on('request', (request) => sent.push(request.url()));
  await forgetful.goto(`${fixture.cloud.api}/sign-in`);
  await forgetful.getByRole('button', { name: 'Forgot your password?' }).click();
  await forgetful.getByText('Ask the administrator of this cloud for a link').waitFor();
  await forgetful.getByText('bin/cloudlet admin reset-link NAME').waitFor();
  await assertAccessible(forgetful, 'the way back in');
  await forgetful.goto(link);
  const [first, second] = ['New password', 'New password, again'].map((label) =>
    forgetful.getByLabel(label, { exact: true }),
  ) as [Locator, Locator];
  await first.fill('quite another one');
  assert.equal(forgetful.url(), `${fixture.cloud.api}/reset-password`, 'the token leaves the address');
  await second.fill('quite another tow');
  const set = () => forgetful.getByRole('button', { name: 'Set password' }).click();
  await set();
  await forgetful.getByText('The passwords differ.').waitFor();
  await assertAccessible(forgetful, 'passwords that differ');
  await second.fill('quite another one');
  await set();
  await forgetful.getByRole('heading', { name: 'The password is set' }).waitFor();
  await forgetful.getByText(`You are signed in as ${username}.`).waitFor();
  await forgetful.getByText('1 API key still works. If someone else may know one, revoke it.').waitFor();
  await assertAccessible(forgetful, 'the password is set');
  const token = new URL(link).hash.slice('#token='.length);
  assert.ok(token.length > 40 && !sent.some((url) => url.includes(token)), 'no server is sent the token');
  await forgetful.getByRole('button', { name: 'Show API keys' }).click();
  await forgetful.getByRole('heading', { name: 'API key' }).first().waitFor();
  const json = { username, password: 'quite another one' };
  await user.as(undefined).expect(200, '/api/login', { json });

  await forgetful.goto(link);
  await first.fill('a third one');
  await second.fill('a third one');
  await set();
  await forgetful.getByRole('alert').getByText('The link is unknown, used, replaced or expired').waitFor();
  assert.equal(await first.count(), 0, 'no other password helps');
  await assertAccessible(forgetful, 'a link that was used');
  await forgetful.getByRole('link', { name: 'Forgot your password?' }).click();
  await forgetful.getByText('Ask the administrator of this cloud for a link').waitFor();
  await forgetful.goto(link);
  await first.waitFor();
  await forgetful.reload();
  await forgetful.getByRole('heading', { name: 'This link is incomplete' }).waitFor();
  await assertAccessible(forgetful, 'a link without a token');
  await forgetful.close();
});

test('no page complained, and none asked another host', { skip }, () => {
  assert.deepEqual(fixture.complaints, []);
});
