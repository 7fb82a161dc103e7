/** Restores from a recovery point in the console: objects, a machine, an account. In a real browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf, PASSWORD } from './console-kit.ts';
import { POINTS, POST } from './recovery-kit.ts';
import { cannotRunGuests, newVm, removeAll } from './vms-kit.ts';

const skip = noBrowser || cannotRunGuests();

let fixture: ConsoleFixture;
let page: Page;
let user: CheckedClient;
let admin: CheckedClient;
let machine: string;
before(async () => {
  if (skip) return;
  fixture = await ConsoleFixture.open();
  admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
  page = await fixture.signedUp('ada');
  user = admin.as((await clientOf(fixture, page)).key ?? '');
  await user.expect(201, '/api/buckets', { json: { name: 'photos', versioning: true } });
  for (const text of ['first', 'second']) await user.upload('photos', 'note.txt', text);
  machine = await newVm(user, { name: 'web' });
  await admin.expect(201, `${POINTS}?wait=60`, POST);
});
after(async () => {
  if (skip) return;
  await removeAll(user);
  await fixture.close();
});

const press = (name: string) => page.getByRole('button', { name, exact: true }).click();

test('all versions of a bucket', { skip }, async () => {
  await page.goto(`${fixture.cloud.api}/storage/photos?tab=recovery`);
  await page.getByLabel('Into bucket').fill('photos-then');
  await page.getByRole('switch', { name: 'All versions and delete markers' }).click();
  await press('Preview');
  await page.getByText('2 objects (11 B) would be restored.').waitFor();
  await page
    .getByText('Not restored (1): Access for everyone is blocked until you allow it again.')
    .waitFor();
  await press('Restore');
  await page.getByText('2 objects (11 B) restored.').waitFor();
  assert.equal((await user.expect(200, '/api/buckets/photos-then')).version_count, 2);
  await assertAccessible(page, '/storage/photos?tab=recovery');
});

test('a machine as a new one', { skip }, async () => {
  await page.goto(`${fixture.cloud.api}/machines/${machine.split('/').at(-1)}?tab=recovery`);
  await page.getByLabel('Name of the new machine').fill('web-again');
  await press('Create machine');
  await page.getByRole('heading', { name: 'web-again' }).waitFor();
  assert.equal((await user.expect(200, '/api/vms')).length, 2);
});

test('an account as a new one', { skip }, async () => {
  const chief = { username: 'chief', email: 'chief@example.org', password: PASSWORD, is_admin: true };
  await admin.expect(201, '/api/admin/accounts', { json: chief });
  page = await fixture.newPage();
  await page.goto(`${fixture.cloud.api}/sign-in?next=/recovery`);
  await page.getByLabel('User name').fill('chief');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await press('Sign in');
  await press('Details');
  await page.getByLabel('Account in the recovery point').fill('ada');
  await page.getByLabel('New user name').fill('ada-then');
  await page.getByLabel('New e-mail address').fill('ada-then@example.org');
  await press('Preview');
  await page.getByText('Would be restored:').waitFor();
  await press('Restore account');
  await page.getByText('All files are there:').waitFor();
  await page.getByText('Machine web is available').waitFor();
  const key = await page.getByText(/^clk_/).first().innerText();
  const back = admin.as(key.trim());
  assert.equal((await back.expect(200, '/api/profile')).username, 'ada-then');
  assert.equal((await back.expect(200, '/api/buckets/photos')).version_count, 2);
  await removeAll(back);
  assert.deepEqual(fixture.complaints, []);
});
