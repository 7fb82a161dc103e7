/** A cloud with mail, using its pages only: an account by mail, a confirmed address, a forgotten password. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { MailServer } from '../harness/mail-server.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, PASSWORD } from './console-kit.ts';
import { assertRoomForLongWords } from './long-words.ts';

const skip = noBrowser;
const NEXT = 'quite another one';
const PICTURES = process.env.MAIL_PICTURES;

let server: MailServer;
let fixture: ConsoleFixture;
let admin: CheckedClient;
before(async () => {
  server = await new MailServer().open();
  const env = {
    CLOUDLET_SMTP_URL: server.url,
    CLOUDLET_MAIL_FROM: 'cloud@example.org',
    CLOUDLET_REGISTRATION: 'domain:example.org',
  };
  fixture = await ConsoleFixture.open({ env });
  admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
});
after(async () => {
  await fixture?.close();
  await server?.close();
});

async function look(page: Page, what: string): Promise<void> {
  await assertAccessible(page, what);
  if (PICTURES !== undefined) await page.screenshot({ path: `${PICTURES}/${what}.png`, fullPage: true });
}
async function linkTo(email: string, path: string): Promise<string> {
  const { text } = await server.mailTo(email, (mail) => mail.text.includes(`/${path}#token=`));
  return /https?:\/\/\S+/.exec(text)?.[0] ?? '';
}
async function signIn(page: Page, name: string, password: string): Promise<void> {
  await page.goto(`${fixture.cloud.api}/sign-in`);
  await page.getByLabel('User name').fill(name);
  await page.getByLabel('Password', { exact: true }).fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
}

test('an account by mail, at an address of the domain', { skip }, async () => {
  const page = await fixture.newPage();
  await page.goto(`${fixture.cloud.api}/sign-in`);
  await page.getByRole('link', { name: 'Create an account' }).click();
  await page.getByText('With an e-mail address of example.org.').waitFor();
  await look(page, 'sign up by mail');
  await page.getByLabel('E-mail address').fill('ada@example.com');
  await page.getByRole('button', { name: 'Send the link' }).click();
  await page.getByText('must be an address of example.org').waitFor();
  await page.getByLabel('E-mail address').fill('ada@example.org');
  await page.getByRole('button', { name: 'Send the link' }).click();
  await page.getByRole('heading', { name: 'Check your mail' }).waitFor();
  await page.goto(await linkTo('ada@example.org', 'join'));
  await page.getByLabel('User name').fill('ada');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Create account' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
  await page.goto(`${fixture.cloud.api}/account`);
  await page.getByText('confirmed', { exact: true }).waitFor();
  const warning = page.getByLabel('Warn me when credits run out');
  // It changes with the answer.
  await warning.click();
  await eventually('the warning is on', () => warning.isChecked());
  await look(page, 'mail of the account');
  await page.close();
  const [ada] = (await admin.expect(200, '/api/admin/accounts')).slice(-1);
  assert.deepEqual([ada.username, ada.email_confirmed, ada.mail_about], ['ada', true, ['credits']]);
});

test('a forgotten password, on a phone in the dark', { skip }, async () => {
  const phone = { viewport: { width: 390, height: 844 }, colorScheme: 'dark' } as const;
  const page = await fixture.newPage(await fixture.browser.newContext(phone));
  await page.goto(`${fixture.cloud.api}/sign-in`);
  await page.getByRole('link', { name: 'Forgot your password?' }).click();
  await page.getByRole('heading', { name: 'Forgot your password?' }).waitFor();
  await look(page, 'forgot');
  await assertRoomForLongWords(page, 'forgot');
  const said: string[] = [];
  for (const email of ['nobody@example.org', 'ada@example.org']) {
    await page.goto(`${fixture.cloud.api}/forgot-password`);
    await page.getByLabel('E-mail address').fill(email);
    await page.getByRole('button', { name: 'Send the link' }).click();
    await page.getByRole('heading', { name: 'Check your mail' }).waitFor();
    said.push(String(await page.getByRole('main').textContent()).replace(email, ''));
  }
  assert.equal(said[0], said[1]);
  await look(page, 'forgot sent');
  await assertRoomForLongWords(page, 'forgot sent');
  const link = await linkTo('ada@example.org', 'reset-password');
  await page.goto(link);
  for (const label of ['New password', 'New password, again'])
    await page.getByLabel(label, { exact: true }).fill(NEXT);
  await page.getByRole('button', { name: 'Set password' }).click();
  await page.getByText('You are signed in as ada.').waitFor();
  await page.getByText('API key still works').waitFor();
  assert.ok(!server.received.some(({ to }) => to.includes('nobody@example.org')));
  const other = await fixture.newPage();
  await other.goto(link);
  for (const label of ['New password', 'New password, again'])
    await other.getByLabel(label, { exact: true }).fill('a third one');
  await other.getByRole('button', { name: 'Set password' }).click();
  await other.getByText('The link is unknown, used').waitFor();
  await other.close();
  await page.close();
});

test('an administrator changes an account and mails a link', { skip }, async () => {
  const json = { username: 'head', email: 'head@example.org', password: PASSWORD, is_admin: true };
  await admin.expect(201, '/api/admin/accounts', { json });
  const page = await fixture.newPage();
  await page.goto(await linkTo('head@example.org', 'confirm-email'));
  await look(page, 'confirm');
  await page.getByRole('button', { name: 'Confirm' }).click();
  await page.getByText('head@example.org is the address of head.').waitFor();
  await signIn(page, 'head', PASSWORD);
  await page.goto(`${fixture.cloud.api}/administration?tab=accounts`);
  const menu = page.getByRole('button', { name: 'Actions for ada' });
  await menu.click();
  await page.getByRole('menuitem', { name: 'Account', exact: true }).click();
  const form = page.getByRole('dialog', { name: 'Account ada' });
  await form.getByText('The e-mail address is confirmed.').waitFor();
  await look(page, 'account form');
  await form.getByLabel('Last day').fill('2999-07-31');
  await form.getByLabel('New password at the next sign-in').check();
  await form.getByRole('button', { name: 'Save' }).click();
  await form.waitFor({ state: 'detached' });
  const accounts = await admin.expect(200, '/api/admin/accounts');
  const ada = accounts.find(({ username }: { username: string }) => username === 'ada');
  const midnight = new Date(2999, 7, 1).toISOString().slice(0, 19).replace('T', ' ');
  assert.deepEqual([ada.expires_at, ada.must_change_password], [midnight, true]);
  server.received.length = 0;
  await menu.click();
  await page.getByRole('menuitem', { name: 'Mail reset link' }).click();
  await page.getByText('Mailed to ada@example.org').waitFor();
  await linkTo('ada@example.org', 'reset-password');
  await page.goto(`${fixture.cloud.api}/administration?tab=invitations`);
  await page.getByText('Registration is open to e-mail addresses').waitFor();
  await page.getByRole('button', { name: 'Invite', exact: true }).first().click();
  const invite = page.getByRole('dialog', { name: 'Invite' });
  await invite.getByLabel('E-mail address').fill('eve@example.net');
  await invite.getByLabel('Send by mail').check();
  await look(page, 'invite by mail');
  await invite.getByRole('button', { name: 'Invite', exact: true }).click();
  await page.getByText('The invitation is sent by mail.').waitFor();
  assert.match(await linkTo('eve@example.net', 'join'), /\/join#token=/);
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});
