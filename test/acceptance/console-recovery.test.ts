/** The schedule of recovery points in the console. In a real browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, assertOpens } from './console-journey.ts';
import { ConsoleFixture, clientOf, PASSWORD } from './console-kit.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
let page: Page;
before(async () => {
  if (skip) return;
  fixture = await ConsoleFixture.open();
  const admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
  const chief = { username: 'chief', email: 'chief@example.org', password: PASSWORD, is_admin: true };
  await admin.expect(201, '/api/admin/accounts', { json: chief });
  page = await fixture.newPage();
  await page.goto(`${fixture.cloud.api}/sign-in?next=/recovery`);
  await page.getByLabel('User name').fill('chief');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
});
after(() => fixture?.close());

const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
const dialog = () => page.getByRole('dialog');
const save = () => dialog().getByRole('button', { name: 'Save' }).click();

test('the first visit shows what is missing, and how it is set', { skip }, async () => {
  await page.getByRole('heading', { name: 'Protect this cloud' }).waitFor();
  await page.getByText('CLOUDLET_RECOVERY_TARGET=/mnt/backup/cloudlet').waitFor();
  await page.getByText('Recovery points are created only by hand.').waitFor();
  await assertAccessible(page, '/recovery');
});

test('a refused schedule says so at its fields, and keeps what was typed', { skip }, async () => {
  await assertOpens(page, 'Set schedule');
  await press('Set schedule');
  await dialog().getByText('There are no recovery points yet.').waitFor();
  await dialog().getByLabel('Time, UTC').fill('25:00');
  await save();
  await dialog().getByText('must be a time of day as HH:MM, UTC, such as 03:00').waitFor();
  await dialog().getByLabel('Time, UTC').fill('04:30');
  for (const rule of ['Days', 'Weeks', 'Months']) {
    await dialog().getByLabel(rule, { exact: true }).fill('0');
  }
  await save();
  await dialog()
    .getByText(/^must keep at least one point/)
    .waitFor();
  assert.equal(await dialog().getByRole('alert').count(), 0, 'it is said once');
});

test('it is saved, the first point comes by itself, and the rules are previewed', { skip }, async () => {
  await dialog().getByLabel('Days', { exact: true }).fill('3');
  await save();
  await page.getByText('daily at 04:30 UTC').waitFor();
  await page.getByText('3 days', { exact: true }).waitFor();
  await page.getByText('complete', { exact: true }).waitFor();
  assert.equal(await page.getByText('Set schedule', { exact: true }).count(), 0, 'the step is done');
  await press('Edit schedule');
  await dialog()
    .getByText(/^With these rules 1 recovery point is kept, and 0 are deleted/)
    .waitFor();
  await dialog().getByText('day, newest complete', { exact: true }).waitFor();
  await dialog().getByLabel('Create recovery points').selectOption('By hand only');
  await save();
  await page.getByText('Recovery points are created only by hand.').waitFor();
  await assertAccessible(page, '/recovery');
  assert.deepEqual(fixture.complaints, []);
});

test('a point is restored in a drill, and its report says what was compared', { skip }, async () => {
  await page
    .getByRole('button', { name: /^Actions for drp-/ })
    .first()
    .click();
  await page.getByRole('menuitem', { name: 'Restore in a drill' }).click();
  await page.getByText('restored in a drill', { exact: true }).waitFor({ timeout: 120_000 });
  await press('Details');
  await dialog().getByText('Last restore drill').waitFor();
  await dialog()
    .getByText(/passed, in [\d.,]+ s/)
    .waitFor();
  await dialog().getByRole('cell', { name: 'ledger', exact: true }).waitFor();
  await assertAccessible(page, 'a drill’s report');
  assert.deepEqual(fixture.complaints, []);
});

test('an owner restores what was deleted from a recovery point, after a preview', { skip }, async () => {
  const tab = await fixture.signedUp('restorer', '/storage');
  const client = await clientOf(fixture, tab);
  await client.call('/api/buckets', { json: { name: 'wanted' } });
  const { body } = await client.upload('wanted', 'trip/a.txt', 'bytes');
  await tab.goto(`${fixture.cloud.api}/storage/wanted?tab=recovery`);
  await tab.getByRole('heading', { name: 'No recovery points' }).waitFor();
  const admin = client.as(ADMIN_KEY);
  await admin.call('/api/disaster-recovery/points?wait=60', { method: 'POST' });
  await client.call(`/api/storage/${body.object_id}`, { method: 'DELETE' });
  await tab.reload();
  await tab.getByLabel('Only names that begin with').fill('trip/');
  await tab.getByRole('button', { name: 'Preview' }).click();
  await tab.getByText('1 object (5 B) would be restored.').waitFor();
  await assertAccessible(tab, 'recovery');
  await tab.getByRole('button', { name: 'Restore', exact: true }).click();
  await tab.getByText('1 object (5 B) restored.').waitFor();
  await tab.getByRole('button', { name: 'Preview' }).click();
  await tab.getByText('1 object unchanged.').waitFor();
  await tab.getByRole('tab', { name: 'Objects' }).click();
  await tab.getByText('trip').first().waitFor();
  await tab.close();
});
