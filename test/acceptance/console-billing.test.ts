/** Messages of the console about credits: booked ones, and insufficient ones. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { askIn, ConsoleFixture, PASSWORD } from './console-kit.ts';
import { cannotRunGuests, removeAll } from './vms-kit.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
let admin: CheckedClient;
before(async () => {
  if (skip) return;
  // So little memory for machines that some size is too large for almost any host.
  fixture = await ConsoleFixture.open({ env: { CLOUDLET_MEMORY_OVERCOMMIT: '0.5' } });
  admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
});
after(() => fixture?.close());

const account = async (page: Page) =>
  (await askIn(page, '/api/account')) as { id: number; api_key: string; credits: number };

test('the ledger has a line for each day with its sums, and opens its entries', { skip }, async () => {
  const page = await fixture.signedUp('thrifty');
  const { id } = await account(page);
  for (const amount of [0.12344, 2, -0.00001]) {
    await admin.expect(200, `/api/admin/accounts/${id}/credits`, { json: { amount, reason: 'a gift' } });
  }
  await page.goto(`${fixture.cloud.api}/billing?tab=ledger`);
  const rows = page.locator('tbody tr');
  const day = rows.filter({ hasText: '4 entries' });
  await day.filter({ hasText: '+12.1234' }).filter({ hasText: '12.1234' }).waitFor();
  assert.equal(await rows.count(), 1);
  assert.equal(await day.getByTitle('12.12343', { exact: true }).count(), 2, 'every digit is in the title');
  await day.getByRole('button').click();
  await page.reload();
  await rows.nth(4).waitFor();
  await rows.nth(1).filter({ hasText: '≈ 0' }).waitFor();
  const booked = rows.nth(2).locator('time');
  assert.match(String(await booked.getAttribute('title')), /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/);
  await assertAccessible(page, 'the ledger');
  await day.getByRole('button').click();
  await rows.nth(1).waitFor({ state: 'detached' });
  await page.close();
});

const guestless = skip || cannotRunGuests();
test('too few credits are told before a form is sent, and a refused start says how to go on', {
  skip: guestless,
}, async () => {
  const page = await fixture.signedUp('poor');
  const { id, api_key } = await account(page);
  const give = (amount: number) =>
    admin.expect(200, `/api/admin/accounts/${id}/credits`, { json: { amount, reason: 'a change' } });
  await give(-9.98);
  await page.goto(`${fixture.cloud.api}/machines/new`);
  await page.getByLabel('Name', { exact: true }).fill('small');
  const warning = page.getByText(
    'Starting this machine holds 0.023 credits for one hour, and you have 0.02 left.',
  );
  await page.getByText('0.0116 / hour').first().waitFor();
  assert.equal(await warning.count(), 0, 'there are enough for the smallest');
  await page.getByRole('radio', { name: /t2\.small/ }).click();
  await warning.waitFor();
  await assertAccessible(page, 'a form without enough credits');
  await page.getByLabel('Start immediately').uncheck();
  await warning.waitFor({ state: 'detached' });
  await page.getByLabel('Start immediately').check();
  await page.getByRole('button', { name: 'Create and start' }).click();
  const refused = page.getByRole('alert').filter({ hasText: 'an hour of t2.small costs 0.023 credits' });
  await refused.getByRole('link', { name: 'Create a smaller machine' }).waitFor();
  await assertAccessible(page, 'a refused start');
  await give(5);
  await page.getByRole('button', { name: 'Start', exact: true }).click();
  await refused.waitFor({ state: 'detached' });
  await page.getByText('Connected', { exact: true }).waitFor();
  const { accel_reason } = (await hostOf(admin)) as { accel_reason: string };
  await page.getByRole('tab', { name: 'Overview' }).click();
  await page.getByText('Programs run slower in an emulated machine').waitFor();
  assert.equal(await page.getByText(accel_reason).count(), 0, 'what only operators can mend');
  await removeAll(await CheckedClient.open(fixture.cloud.api, api_key));

  await give(-5);
  // The latest usage may be charged between the two calls.
  await eventually('no credits are left', async () => {
    const amount = -Number((await account(page)).credits);
    const json = { amount, reason: 'a change' };
    return (await admin.call(`/api/admin/accounts/${id}/credits`, { json })).status === 200;
  });
  await page.goto(`${fixture.cloud.api}/databases/new`);
  await page.getByText('You have no credits left, so nothing can be created or started.').waitFor();
  await page.close();
});

const hostOf = async (client: CheckedClient): Promise<Record<string, unknown>> =>
  (await client.expect(200, '/api/system/status')).components.compute;

test('sizes that the host cannot hold are greyed out with the reason', { skip }, async (context) => {
  const page = await fixture.signedUp('modest', '/machines/new');
  const types: { instance_type: string; startable: boolean; reason: string | null }[] = await admin.expect(
    200,
    '/api/instance-types',
  );
  if (types.every(({ startable }) => startable)) context.skip('this host holds machines of every size');
  for (const { instance_type, startable, reason } of types) {
    const card = page.getByRole('radio', { name: instance_type });
    assert.equal(await card.isDisabled(), !startable, instance_type);
    if (reason !== null) await card.filter({ hasText: reason }).waitFor();
  }
  await assertAccessible(page, 'sizes that are too large');
  await page.close();
});

test('why machines are slow here is told to administrators, and to others only that they are', {
  skip,
}, async () => {
  const { accel, accel_reason } = await hostOf(admin);
  assert.equal(accel, 'tcg');
  const page = await fixture.signedUp('tenant', '/machines/new');
  await page.getByText('Machines are emulated on this host, so programs run slower in them.').waitFor();
  assert.equal(await page.getByText(String(accel_reason)).count(), 0);
  const json = { username: 'chief', email: 'chief@example.org', password: PASSWORD, is_admin: true };
  await admin.expect(201, '/api/admin/accounts', { json });
  await page.context().clearCookies();
  await page.goto(`${fixture.cloud.api}/sign-in?next=/machines/new`);
  await page.getByLabel('User name or e-mail address').fill('chief');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByText(String(accel_reason)).waitFor();
  await page.close();
});
