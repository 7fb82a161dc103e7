/** A week of a class using the page: mistakes are corrected, an auditor looks, the teacher hands over. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, stepsOf } from './console-journey.ts';
import { ConsoleFixture, PASSWORD } from './console-kit.ts';

const step = stepsOf(noBrowser);
const PATIENCE_MS = 60_000;
const PEOPLE = ['pupil-1', 'pupil-2', 'colleague'];
const PICTURES = process.env.WEEK_PICTURES;

let fixture: ConsoleFixture;
let page: Page;
let admin: CheckedClient;

before(async () => {
  if (noBrowser) return;
  fixture = await ConsoleFixture.open({ env: { CLOUDLET_REGISTRATION: 'invitation' } });
  admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
  const create = (username: string, is_admin = false) => {
    const json = { username, email: `${username}@example.org`, password: PASSWORD, is_admin };
    return admin.expect(201, '/api/admin/accounts', { json });
  };
  await create('teacher', true);
  for (const name of PEOPLE) await create(name);
  page = await signedIn('teacher', '/administration?tab=invitations');
});
after(() => fixture?.close());

async function signedIn(name: string, path: string): Promise<Page> {
  const opened = await fixture.newPage();
  opened.setDefaultTimeout(PATIENCE_MS);
  await opened.goto(`${fixture.cloud.api}/sign-in?next=${encodeURIComponent(path)}`);
  await opened.getByLabel('User name').fill(name);
  await opened.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await opened.getByRole('button', { name: 'Sign in', exact: true }).click();
  await opened.getByRole('navigation', { name: 'Main' }).waitFor();
  return opened;
}

async function look(seen: Page, what: string): Promise<void> {
  await assertAccessible(seen, what);
  if (PICTURES !== undefined) await seen.screenshot({ path: `${PICTURES}/${what}.png`, fullPage: true });
}

const accounts = () => page.goto(`${fixture.cloud.api}/administration?tab=accounts`);
const button = (name: string) => page.getByRole('button', { name, exact: true });
const dialog = (name: string) => page.getByRole('dialog', { name });
const row = (name: string) => page.getByRole('row', { name: new RegExp(`\\b${name}\\b`) });

async function choose(name: string, item: string): Promise<void> {
  await button(`Actions for ${name}`).click();
  await page.getByRole('menuitem', { name: item, exact: true }).click();
}

step('a wrong address is seen in the list, and corrected with a new link', async () => {
  const json = { username: 'late', email: 'late@exmaple.org', label: 'Late, Lena' };
  const { url: former } = await admin.expect(201, '/api/admin/invitations', { json });
  await admin.expect(201, '/api/admin/invitations', { json: { label: 'class 7b', max_uses: 30 } });
  await page.reload();
  await row('late').getByText('late@exmaple.org').waitFor();
  await page.getByRole('searchbox', { name: 'Filter' }).fill('exmaple');
  await row('7b').waitFor({ state: 'detached' });
  await button('New link for late').click();
  const form = dialog('New link for late');
  await form.getByLabel('E-mail address').fill('late@example.org');
  await look(page, 'a new link');
  await form.getByRole('button', { name: 'New link', exact: true }).click();
  const shown = dialog('The new link');
  const link = String(await shown.locator('pre').textContent());
  assert.notEqual(link, former);
  await page.keyboard.press('Escape');
  const pupil = await fixture.newPage();
  await pupil.goto(former);
  await pupil.getByRole('heading', { name: 'This invitation does not work' }).waitFor();
  await pupil.goto('about:blank');
  await pupil.goto(link);
  await pupil.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await pupil.getByRole('button', { name: 'Create account' }).click();
  await pupil.getByRole('navigation', { name: 'Main' }).waitFor();
  await pupil.close();
  const { email } = (await admin.expect(200, '/api/admin/accounts')).at(-1);
  assert.equal(email, 'late@example.org');
});

step('a removal says until when, a suspension why; both are undone for many at once', async () => {
  await accounts();
  await choose('pupil-1', 'Suspend');
  await dialog('Suspend pupil-1?').getByLabel('Reason').fill('mining');
  await page.keyboard.press('Enter');
  await row('pupil-1').getByText('mining').waitFor();
  await choose('pupil-2', 'Remove');
  await dialog('Remove pupil-2?').getByLabel('Reason').fill('moved');
  await page.keyboard.press('Enter');
  await row('pupil-2')
    .getByText(/^removed: \S/)
    .waitFor();
  await row('pupil-2').getByText('removed by an administrator: moved').waitFor();
  await look(page, 'a removed and a suspended account');
  for (const name of ['pupil-1', 'pupil-2', 'late'])
    await page.getByRole('checkbox', { name: `Select ${name}`, exact: true }).check();
  await button('Reactivate').click();
  const asked = dialog('Reactivate 3 accounts?');
  await asked.getByRole('button', { name: 'Reactivate 3 accounts' }).click();
  await asked.getByText('3 of 3 done').waitFor();
  await asked.getByRole('button', { name: 'Close', exact: true }).last().click();
  await row('pupil-2')
    .getByText(/^removed: \S/)
    .waitFor({ state: 'detached' });
  const all = await admin.expect(200, '/api/admin/accounts');
  assert.deepEqual(
    all.filter(({ is_active }: { is_active: boolean }) => !is_active),
    [],
  );
});

step('an auditor sees what is there, and no button that is refused', async () => {
  await choose('pupil-1', 'Account');
  await dialog('Account pupil-1').getByLabel('Rights').selectOption('auditor');
  await dialog('Account pupil-1').getByRole('button', { name: 'Save' }).click();
  await row('pupil-1').getByText('auditor').waitFor();
  const auditor = await signedIn('pupil-1', '/administration?tab=accounts');
  await auditor.getByRole('button', { name: 'Actions for pupil-2' }).click();
  const items = await auditor.getByRole('menuitem').allTextContents();
  assert.deepEqual(items, ['Statement', 'Show rights']);
  await auditor.keyboard.press('Escape');
  assert.equal(await auditor.getByRole('button', { name: 'Create account' }).count(), 0);
  assert.equal(await auditor.getByRole('checkbox').count(), 0);
  await look(auditor, 'accounts for an auditor');
  await auditor.goto(`${fixture.cloud.api}/administration?tab=invitations`);
  await auditor.getByText('late@example.org').waitFor();
  assert.equal(await auditor.getByRole('button', { name: /^(?:Invite|New link|Revoke)/ }).count(), 0);
  await auditor.close();
});

step('the audit log names accounts, and shows what was done to one', async () => {
  await page.goto(`${fixture.cloud.api}/administration?tab=audit`);
  await page.getByRole('row').filter({ hasText: 'adminRemoveAccount' }).getByText('pupil-2').waitFor();
  await page.getByRole('combobox', { name: 'Account' }).click();
  await page.getByRole('option', { name: 'pupil-2', exact: true }).click();
  await page.getByRole('cell', { name: 'adminSuspendAccount' }).first().waitFor({ state: 'detached' });
  await page.getByRole('cell', { name: 'adminKeepAccount', exact: true }).waitFor();
  await look(page, 'the audit log of one account');
});

step('the teacher hands over, and the page knows it; the last administrator stays', async () => {
  await accounts();
  await choose('colleague', 'Account');
  await dialog('Account colleague').getByLabel('Rights').selectOption('administrator');
  await dialog('Account colleague').getByRole('button', { name: 'Save' }).click();
  await row('colleague').getByText('administrator').waitFor();
  await choose('teacher', 'Account');
  const own = dialog('Account teacher');
  await own.getByLabel('Rights').selectOption('user');
  await own.getByText('you lose these rights at once').waitFor();
  await own.getByRole('button', { name: 'Save' }).click();
  await eventually('the page is left', async () => new URL(page.url()).pathname === '/');
  await page.getByRole('link', { name: 'Administration' }).waitFor({ state: 'detached' });
  await page.close();

  page = await signedIn('colleague', '/administration?tab=accounts');
  await choose('admin', 'Remove');
  await dialog('Remove admin?').getByLabel('Reason').fill('left over');
  await page.keyboard.press('Enter');
  await row('admin')
    .getByText(/^removed: \S/)
    .waitFor();
  await choose('colleague', 'Account');
  await dialog('Account colleague').getByLabel('Rights').selectOption('user');
  await dialog('Account colleague').getByRole('button', { name: 'Save' }).click();
  await page.getByText('This is the last active administrator').waitFor();
  await page.keyboard.press('Escape');
  assert.deepEqual(fixture.complaints, []);
});
