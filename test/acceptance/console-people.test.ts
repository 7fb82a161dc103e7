/** A class using the page only: invited, limited, one password reset, one pupil removed with an export. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before } from 'node:test';
import type { Download, Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { unzip } from '../harness/zip.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, stepsOf } from './console-journey.ts';
import { ConsoleFixture, PASSWORD, writtenFiles } from './console-kit.ts';

const step = stepsOf(noBrowser);
const PATIENCE_MS = 60_000;
const PUPILS = Array.from({ length: 30 }, (_, i) => `pupil-${String(i + 1).padStart(2, '0')}`);
const TABLE = ['username,email', ...PUPILS.map((name) => `${name},${name}@example.org`)].join('\n');
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1280, height: 900 };

let fixture: ConsoleFixture;
let page: Page;
let admin: CheckedClient;
/** By the name of the invited person. */
let links: ReadonlyMap<string, string>;

before(async () => {
  if (noBrowser) return;
  fixture = await ConsoleFixture.open();
  admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
  const json = { username: 'teacher', email: 'teacher@example.org', password: PASSWORD, is_admin: true };
  await admin.expect(201, '/api/admin/accounts', { json });
  page = await fixture.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.setViewportSize(DESK);
});
after(() => fixture?.close());

const open = (path: string) => page.goto(fixture.cloud.api + path);
const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
const dialog = (name: string | RegExp) => page.getByRole('dialog', { name });
const select = (name: string) => page.getByRole('checkbox', { name: `Select ${name}`, exact: true });

/** Light and dark, on a desktop and on a phone, where nothing is wider than the screen. */
async function assertGood(what: string): Promise<void> {
  for (const size of [PHONE, DESK]) {
    await page.setViewportSize(size);
    await assertAccessible(page, `${what}, ${size.width}`);
    const width = await page.evaluate('document.documentElement.scrollWidth');
    assert.ok(Number(width) <= size.width, `${what}: ${width} on ${size.width}`);
  }
}

step('the class is invited from a table', async () => {
  await open('/sign-in?next=%2Fadministration%3Ftab%3Dinvitations');
  await page.getByLabel('User name').fill('teacher');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await button('Sign in').click();
  await button('Invite').click();
  const form = dialog('Invite');
  await form.getByText('CSV table', { exact: true }).click();
  const chooser = page.waitForEvent('filechooser');
  await form.getByRole('button', { name: 'Table' }).click();
  await (await chooser).setFiles(writtenFiles({ 'class.csv': TABLE }));
  await form.getByRole('button', { name: 'Invite', exact: true }).click();
  const made = dialog('30 invitations');
  await made.waitFor();
  const lines = String(await made.locator('pre').textContent()).split('\n');
  links = new Map(lines.map((line) => line.split('\t') as [string, string]));
  assert.deepEqual([...links.keys()], PUPILS);
  await page.keyboard.press('Escape');
});

step('pupils join by their links: one in the page, the rest as programs do', async () => {
  const [first = '', ...rest] = PUPILS;
  const pupil = await fixture.newPage();
  await pupil.goto(links.get(first) ?? '');
  await pupil.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await pupil.getByRole('button', { name: 'Create account' }).click();
  await pupil.getByRole('navigation', { name: 'Main' }).waitFor();
  await pupil.close();
  for (const name of rest) {
    const token = new URL(links.get(name) ?? '').hash.slice('#token='.length);
    await admin.as(undefined).expect(201, '/api/join', { json: { token, password: PASSWORD } });
  }
});

step('all of them get a plan with limits, with the keyboard', async () => {
  await open('/administration?tab=plans');
  await button('Create plan').click();
  const form = dialog('Create plan');
  await form.getByLabel('Plan', { exact: true }).fill('class');
  await form.getByRole('button', { name: 'Create plan' }).click();
  await form.waitFor({ state: 'detached' });
  await open('/administration?tab=accounts&find=pupil');
  const all = page.getByRole('checkbox', { name: 'Select all 30' });
  await all.waitFor();
  await assertGood('the list of accounts');
  await all.press('Space');
  await page.getByText('30 accounts selected').waitFor();
  await page
    .getByRole('group', { name: '30 accounts selected' })
    .getByRole('button', { name: 'Plan' })
    .press('Enter');
  const asked = dialog('Plan of 30 accounts');
  await page
    .locator(':focus')
    .and(asked.getByLabel('Plan', { exact: true }))
    .waitFor();
  await page.keyboard.press('ArrowDown');
  await page.getByRole('option', { name: 'class' }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await assertGood('a plan for many');
  const chosen = await asked.getByLabel('Plan', { exact: true }).inputValue();
  if (chosen !== 'class') {
    await asked.getByLabel('Plan', { exact: true }).click();
    await page.getByRole('option', { name: 'class' }).click();
  }
  await asked.getByRole('button', { name: 'Change 30 accounts' }).press('Enter');
  await asked.getByText('30 of 30 done').waitFor();
  await assertGood('a plan that many have');
  await page.keyboard.press('Escape');
  await asked.waitFor({ state: 'detached' });
  const accounts = await admin.expect(200, '/api/admin/accounts');
  const plans = accounts.filter(({ username }: { username: string }) => PUPILS.includes(username));
  assert.ok(plans.length === 30 && plans.every(({ plan }: { plan: string }) => plan === 'class'));
});

step('all of them get one spend cap; the one that is refused is named, and tried again', async () => {
  await page.getByRole('checkbox', { name: 'Select all 30' }).press('Space');
  const chosen = page.getByRole('group', { name: '30 accounts selected' });
  await chosen.getByRole('button', { name: 'Spend cap' }).press('Enter');
  const asked = dialog('Spend cap of 30 accounts');
  const credits = asked.getByLabel('Credits per month');
  await page.locator(':focus').and(credits).waitFor();
  await asked.getByRole('button', { name: 'End the cap of 30 accounts' }).waitFor();
  await credits.fill('2.5');
  await assertGood('a cap for many');
  const all = (): Promise<{ username: string; id: number; spend_cap: number | null }[]> =>
    admin.expect(200, '/api/admin/accounts');
  const one = (await all()).find(({ username }) => username === 'pupil-07');
  const refused = `**/api/admin/accounts/${one?.id}`;
  await page.route(refused, (route) =>
    route.fulfill({ status: 409, json: { code: 'write_conflict', detail: 'Changed by others' } }),
  );
  await asked.getByRole('button', { name: 'Set for 30 accounts' }).press('Enter');
  await asked.getByText('29 of 30 done, 1 refused').waitFor();
  await asked.getByRole('listitem').filter({ hasText: 'pupil-07' }).getByText('Changed by others').waitFor();
  const capped = async () =>
    (await all()).filter((each) => each.spend_cap === 2.5).map((each) => each.username);
  assert.deepEqual(
    await capped(),
    PUPILS.filter((name) => name !== 'pupil-07'),
  );
  await page.unroute(refused);
  await asked.getByRole('button', { name: 'Try the rest again' }).press('Enter');
  await asked.getByText('30 of 30 done').waitFor();
  await page.keyboard.press('Escape');
  await asked.waitFor({ state: 'detached' });
  assert.deepEqual(await capped(), PUPILS);
  await page
    .getByRole('row', { name: /pupil-07/ })
    .getByText('Spend cap: 2.50 credits per month')
    .waitFor();
  await assertGood('accounts with a cap');
});

step('some are suspended and given credits; a refusal is told and keeps no other back', async () => {
  await open('/administration?tab=accounts');
  for (const name of ['teacher', 'pupil-05', 'pupil-06']) await select(name).press('Space');
  await page
    .getByRole('group', { name: '3 accounts selected' })
    .getByRole('button', { name: 'Suspend' })
    .press('Enter');
  const asked = dialog('Suspend 3 accounts?');
  await asked.getByLabel('Reason').fill('holidays');
  await page.keyboard.press('Enter');
  await asked.getByText('2 of 3 done, 1 refused').waitFor();
  await asked.getByText('An administrator cannot suspend their own account').waitFor();
  await assertGood('a refusal among many');
  await asked.getByRole('button', { name: 'Close', exact: true }).first().press('Enter');
  await asked.waitFor({ state: 'detached' });
  // Only the refused ones are still selected.
  await page.getByText('1 account selected').waitFor();
  await select('teacher').press('Space');
  for (const name of ['pupil-07', 'pupil-08']) await select(name).press('Space');
  await page
    .getByRole('group', { name: '2 accounts selected' })
    .getByRole('button', { name: 'Credits' })
    .press('Enter');
  const credits = dialog('Credits of 2 accounts');
  await credits.getByLabel('Credits', { exact: true }).fill('5');
  await credits.getByLabel('Reason').fill('good work');
  await page.keyboard.press('Enter');
  await credits.getByText('2 of 2 done').waitFor();
  await page.keyboard.press('Escape');
  const accounts = await admin.expect(200, '/api/admin/accounts');
  const one = (name: string) => accounts.find(({ username }: { username: string }) => username === name);
  assert.deepEqual(
    [one('pupil-05').is_active, one('pupil-06').is_active, one('teacher').is_active],
    [false, false, true],
  );
  assert.deepEqual([one('pupil-07').credits, one('pupil-08').credits], [15, 15]);
});

step('a password is reset by a link', async () => {
  await open('/administration?tab=accounts&find=pupil-02');
  await button('Actions for pupil-02').click();
  await page.getByRole('menuitem', { name: 'Reset link' }).click();
  const shown = dialog('Reset link of pupil-02');
  const link = String(await shown.locator('pre').textContent());
  await page.keyboard.press('Escape');
  const pupil = await fixture.newPage();
  await pupil.goto(link);
  for (const label of ['New password', 'New password, again'])
    await pupil.getByLabel(label, { exact: true }).fill('quite another one');
  await pupil.getByRole('button', { name: 'Set password' }).click();
  await pupil.getByRole('heading', { name: 'The password is set' }).waitFor();
  await pupil.close();
});

step('a pupil takes everything along in the page', async () => {
  const pupil = await fixture.newPage();
  await pupil.goto(`${fixture.cloud.api}/sign-in?next=%2Faccount`);
  await pupil.getByLabel('User name').fill('pupil-01');
  await pupil.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await pupil.getByRole('button', { name: 'Sign in', exact: true }).click();
  const section = pupil.getByRole('region', { name: 'Download everything' });
  await section.scrollIntoViewIfNeeded();
  const saved = pupil.waitForEvent('download');
  await section.getByRole('button', { name: 'Download everything' }).press('Enter');
  assert.deepEqual(await manifestOf(await saved), ['pupil-01', 0]);
  await pupil.close();
});

step('one is removed, with an export before', async () => {
  await open('/administration?tab=accounts&find=pupil-03');
  await button('Actions for pupil-03').click();
  await page.getByRole('menuitem', { name: 'Remove', exact: true }).click();
  const asked = dialog('Remove pupil-03?');
  await asked.waitFor();
  await assertGood('a removal');
  const saved = page.waitForEvent('download');
  await asked.getByRole('button', { name: 'Download everything' }).click();
  assert.deepEqual(await manifestOf(await saved), ['pupil-03', 0]);
  await asked.getByLabel('Reason').fill('has left');
  await asked.getByRole('button', { name: 'Remove', exact: true }).click();
  await asked.waitFor({ state: 'detached' });
  await button('Actions for pupil-03').click();
  await page.getByRole('menuitem', { name: 'Keep the account' }).waitFor();
  await page.keyboard.press('Escape');
});

async function manifestOf(download: Download): Promise<unknown[]> {
  const manifest = JSON.parse(String(unzip(readFileSync(await download.path())).at(-1)?.bytes));
  return [manifest.account.username, manifest.counts.left_out];
}

step('the audit log shows it all', async () => {
  await open('/administration?tab=audit');
  for (const action of [
    ...['adminImportInvitations', 'join', 'adminCreatePlan', 'adminChangeAccount', 'adminSuspendAccount'],
    ...[
      'adminAdjustCredits',
      'adminCreateResetLink',
      'exportAccount',
      'adminExportAccount',
      'adminRemoveAccount',
    ],
  ]) {
    const field = page.getByRole('textbox', { name: 'Operation' });
    await field.fill(action);
    await field.press('Enter');
    await page.getByRole('cell', { name: action, exact: true }).first().waitFor();
  }
  await assertGood('the audit log');
  assert.deepEqual(fixture.complaints, []);
});
