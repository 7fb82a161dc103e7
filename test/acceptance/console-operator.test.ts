/** An operator in the console: accounts, recovery points, billing. In a real browser. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { type Account, sessionOf } from '../harness/client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, assertAsks, assertOpens, typeName } from './console-journey.ts';
import { askIn, ConsoleFixture, PASSWORD, quiet } from './console-kit.ts';

const skip = noBrowser;
const PATIENCE_MS = 120_000;
const TABS = ['accounts', 'machines', 'plans', 'prices', 'revenue', 'images', 'upkeep', 'nodes'];
const PAGES = [
  '/account',
  '/billing',
  '/billing?tab=report',
  '/billing?tab=ledger',
  '/billing?tab=prices',
  '/recovery',
  '/webhooks',
  '/administration',
  ...TABS.map((tab) => `/administration?tab=${tab}`),
];

let fixture: ConsoleFixture;
let page: Page;
let user: CheckedClient;
let username = '';
before(async () => {
  if (skip) return;
  fixture = await ConsoleFixture.open({ env: { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' } });
  const admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
  const chief = { username: 'chief', email: 'chief@example.org', password: PASSWORD, is_admin: true };
  await admin.expect(201, '/api/admin/accounts', { json: chief });
  const anyone = await CheckedClient.open(fixture.cloud.api);
  const guest = await anyone.register();
  username = guest.username;
  user = anyone.as(guest.api_key);
  page = await fixture.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(`${fixture.cloud.api}/sign-in`);
  await page.getByLabel('User name').fill('chief');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
});
after(() => fixture?.close());

const open = (path: string) => page.goto(fixture.cloud.api + path);
const press = (name: string) => page.getByRole('button', { name, exact: true }).click();

test('the overview tells an administrator, and nobody else, what is missing before the cloud is safe', {
  skip,
}, async () => {
  await open('/');
  await page.getByText('All systems are operational, but this cloud is not protected yet.').waitFor();
  await page.getByText('There is no recovery point of this cloud').waitFor();
  const other = await fixture.signedUp('bystander', '/');
  await other.getByText('All systems are operational.').waitFor();
  assert.equal(await other.getByText('There is no recovery point').count(), 0);
  await other.close();
});

test('the version opens its change log, and says that no recovery point is there before an upgrade', {
  skip,
}, async () => {
  await open('/administration');
  await press('What is new');
  const dialog = page.getByRole('dialog', { name: 'What is new' });
  await dialog.getByText('There is no recovery point.').waitFor();
  await dialog.getByText('Cloudlet never checks the network for newer versions').waitFor();
  const notes = dialog.locator('iframe').contentFrame();
  await notes.getByRole('heading', { name: '0.1.0' }).waitFor();
  assert.equal(await notes.getByText('](').count(), 0);
  await assertAccessible(page, 'change log');
  await page.keyboard.press('Escape');
  await page.getByText('Cloudlet 0.1.0').waitFor();
});

test('credits that are given stand in the ledger of the account', { skip }, async () => {
  await open('/administration?tab=accounts');
  await press(`Actions for ${username}`);
  await page.getByRole('menuitem', { name: 'Give credits' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Credits', { exact: true }).fill('25');
  await form.getByLabel('Reason').fill('<i>a gift</i>');
  await form.getByRole('button', { name: 'Give credits' }).click();
  await page.getByRole('cell', { name: '35.00' }).waitFor();
  await press(`Actions for ${username}`);
  await page.getByRole('menuitem', { name: 'Statement' }).click();
  const statement = page.getByRole('dialog', { name: `Statement of ${username}` });
  await statement.getByText('Given by an administrator').waitFor();
  await statement.getByText('<i>a gift</i>').waitFor();
  assert.equal((await user.expect(200, '/api/account')).credits, 35);
  await page.keyboard.press('Escape');
  await statement.waitFor({ state: 'detached' });
  await press(`Actions for ${username}`);
  await page.getByRole('menuitem', { name: 'Plan and limits' }).click();
  const terms = page.getByRole('dialog', { name: `Plan and limits of ${username}` });
  await terms.getByLabel('Buckets').fill('7');
  await terms.getByRole('button', { name: 'Save' }).click();
  await terms.waitFor({ state: 'detached' });
  const { quotas } = await user.expect(200, '/api/billing/quotas');
  const plans: { quotas: { vms: number } }[] = await user.as(ADMIN_KEY).expect(200, '/api/admin/plans');
  const [plan] = plans;
  assert.deepEqual(
    [quotas.buckets.limit, quotas.vms.limit],
    [7, plan?.quotas.vms],
    'the plan rules the rest',
  );
  const [entry] = await user.expect(200, '/api/billing/ledger');
  assert.equal(entry.code, 'admin_grant');
});

test('an account that is suspended is marked, and works again when that ends', { skip }, async () => {
  await open('/administration?tab=accounts');
  await press(`Actions for ${username}`);
  await page.getByRole('menuitem', { name: 'Suspend' }).click();
  const form = page.getByRole('dialog');
  await form.getByLabel('Reason').fill('a try');
  await form.getByRole('button', { name: 'Suspend' }).click();
  await page.getByText('suspended', { exact: true }).waitFor();
  await user.refused(403, 'account_suspended', ['/api/account']);
  await press(`Actions for ${username}`);
  await page.getByRole('menuitem', { name: 'End suspension' }).click();
  await page.getByText('suspended', { exact: true }).waitFor({ state: 'detached' });
  await user.expect(200, '/api/account');
});

test('a recovery point is taken and verified, and its key is proved to be kept', { skip }, async () => {
  await open('/recovery');
  await page.getByRole('heading', { name: 'No recovery points yet' }).waitFor();
  await page.getByRole('button', { name: 'Create recovery point' }).first().click();
  await page.getByText('complete', { exact: true }).waitFor();
  await page.getByRole('button', { name: /^Actions for drp-/ }).click();
  await page.getByRole('menuitem', { name: 'Verify all data' }).click();
  await page.getByText('verified', { exact: true }).waitFor();
  await press('Details');
  await page.getByText(/^cloudlet recovery restore --from .* --point drp-\w+ --to NEW_DIR$/).waitFor();
  await press('Close');

  await assertOpens(page, 'Show recovery key');
  await press('Show recovery key');
  const dialog = page.getByRole('dialog');
  const proof = dialog.getByLabel('Recovery key, as you saved it');
  await proof.fill('not this');
  await dialog.getByRole('button', { name: 'Confirm' }).click();
  await dialog.getByRole('alert').waitFor();
  await proof.fill(String(await dialog.locator('pre').textContent()));
  await dialog.getByRole('button', { name: 'Confirm' }).click();
  await page.getByText('An administrator has confirmed having the key.').first().waitFor();
});

test('whoever is no administrator is shown no such page, and refused at its address', { skip }, async () => {
  const plain = await fixture.signedUp('plain', '/billing');
  await plain.getByText('10.00', { exact: true }).waitFor();
  assert.equal(await plain.getByRole('link', { name: 'Administration' }).count(), 0);
  for (const path of ['administration?tab=accounts', 'recovery']) {
    await plain.goto(`${fixture.cloud.api}/${path}`);
    await plain.getByText('Ask an administrator of this cloud').waitFor();
    assert.equal(await plain.getByText('chief@example.org').count(), 0);
  }
  await plain.goto(`${fixture.cloud.api}/recover`);
  await plain.getByText('Page not found').waitFor();

  await plain.goto(`${fixture.cloud.api}/account`);
  await plain.getByRole('button', { name: 'Close account' }).click();
  await typeName(plain, 'plain');
  await plain.getByText('The account was closed').waitFor();
  await plain.getByLabel('User name').waitFor();
  await plain.close();
});

test('whoever has an account has webhooks of their own, and sees each delivery', { skip }, async (t) => {
  const receiver = await WebhookReceiver.open();
  t.after(() => receiver.close());
  receiver.reply = () => ({ status: 500, body: 'out of order' });
  const own = await fixture.signedUp('hooked', '/webhooks');
  await own.getByText('No webhooks yet').waitFor();
  await own.getByRole('button', { name: 'Create webhook' }).first().click();
  await own.getByLabel('URL', { exact: true }).fill(receiver.url);
  await own.getByRole('dialog').getByRole('button', { name: 'Create webhook' }).click();
  const secret = own.getByRole('dialog', { name: 'Signing secret' });
  assert.match(String(await secret.locator('pre').textContent()), /^whsec_/);
  await own.keyboard.press('Escape');
  await secret.waitFor({ state: 'detached' });
  const menu = `Actions for ${receiver.url}`;
  await assertOpens(own, menu, 'Deliveries');
  await assertAsks(own, menu, 'Delete webhook');
  await own.getByRole('button', { name: menu }).click();
  await own.getByRole('menuitem', { name: 'Send test event' }).click();
  const log = own.getByRole('dialog', { name: 'Deliveries' });
  await log.getByText(/^Response 500 in/).waitFor();
  receiver.reply = () => ({ status: 204 });
  await log.getByRole('button', { name: 'Resend webhook.test' }).click();
  await log.getByText('delivered', { exact: true }).waitFor();
  await own.reload();
  await log.getByText('delivered', { exact: true }).waitFor();
  assert.ok(receiver.received.length >= 2);
  await log.getByRole('button', { name: 'Details of webhook.test' }).click();
  await log.getByText('"message": "It works"').waitFor();
  await log.getByText('out of order').first().waitFor();
  await log.getByText('Failed', { exact: true }).click();
  await log.getByText('There are no deliveries in this state.').waitFor();
  assert.match(own.url(), /&state=failed$/);
  await own.keyboard.press('Escape');
  await log.waitFor({ state: 'detached' });
  await own.getByRole('button', { name: menu }).click();
  await own.getByRole('menuitem', { name: 'Signing secret' }).click();
  const first = await secret.locator('pre').textContent();
  await secret.getByRole('button', { name: 'Rotate secret' }).click();
  await secret.getByText('Requests are also signed with the previous secret').waitFor();
  assert.notEqual(await secret.locator('pre').textContent(), first);
  await own.close();
});

test('what is made elsewhere is shown without a reload, and so is that the cloud is out of reach', {
  skip,
}, async (t) => {
  t.after(() => page.context().setOffline(false));
  await open('/databases');
  await page.getByRole('heading', { name: 'No databases yet' }).waitFor();
  const { api_key } = (await askIn(page, '/api/account')) as Account;
  const chief = user.as(api_key);
  const { database_id } = await chief.expect(201, '/api/databases', { json: { name: 'elsewhere' } });
  await page.getByRole('link', { name: 'elsewhere' }).waitFor();
  // The browser may report a missing network before or after the connection breaks.
  await page.evaluate("window.dispatchEvent(new Event('offline'))");
  await page.context().setOffline(true);
  await page.getByText('Cannot connect to the cloud').waitFor();
  await assertAccessible(page, 'the cloud out of reach');
  await chief.expect(200, `/api/databases/${database_id}`, { method: 'DELETE' });
  await page.context().setOffline(false);
  await page.getByRole('heading', { name: 'No databases yet' }).waitFor();
  await page.getByText('Cannot connect to the cloud').waitFor({ state: 'detached' });
});

test('a form outlives the end of the session', { skip }, async () => {
  await open('/databases/new');
  await page.getByLabel('Name', { exact: true }).fill('kept');
  await askIn(page, '/api/logout', 'POST');
  const dialog = page.getByRole('dialog', { name: 'Your session ended' });
  await dialog.waitFor();
  await assertAccessible(page, 'the dialog over a form');
  assert.equal(await page.getByRole('alert').count(), 0, 'it is said more than once');
  await dialog.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await dialog.getByRole('button', { name: 'Sign in' }).click();
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Create database' }).click();
  await page.getByRole('heading', { level: 1, name: 'kept' }).waitFor();
});

test('who is signed in elsewhere is listed, and can be signed out', { skip }, async () => {
  const elsewhere = await CheckedClient.open(fixture.cloud.api);
  const agent = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
  const json = { username: 'chief', password: PASSWORD };
  await elsewhere.expect(200, '/api/login', { json, headers: { 'user-agent': agent } });
  await open('/account');
  const rows = page.getByRole('region', { name: 'Active sessions' }).getByRole('row');
  const own = rows.filter({ hasText: 'this session' });
  assert.match(String(await own.textContent()), /^Chrome · Linux/);
  assert.equal(await own.getByRole('button').count(), 0);
  await press('End session in Firefox · Linux');
  await rows.filter({ hasText: 'Firefox' }).waitFor({ state: 'detached' });
  const headers = sessionOf(await elsewhere.call('/api/login', { json }));
  await open('/account');
  await press('End all other sessions');
  await page.getByText('All other sessions were ended').waitFor();
  await elsewhere.refused(401, 'invalid_session', ['/api/account', { headers }]);
  await own.waitFor();
});

test('an address with a tab that there is not shows the first one', { skip }, async () => {
  await open('/administration?tab=nothing');
  await page.getByRole('heading', { name: 'Database engines' }).waitFor();
});

test('the palette finds objects and does things, and can be used by everybody', { skip }, async () => {
  const { api_key } = (await askIn(page, '/api/account')) as Account;
  const chief = user.as(api_key);
  await chief.expect(201, '/api/buckets', { json: { name: 'papers' } });
  await chief.upload('papers', '2026/plan <b>.txt', Buffer.from('a plan'));
  // The page reads the list of buckets when it opens, and caches it for a while.
  await open('/account');
  await page.getByRole('heading', { name: 'Access keys' }).waitFor();
  await page.keyboard.press('Control+k');
  const palette = page.getByRole('dialog', { name: 'Search or run a command…' });
  await palette.waitFor();
  await assertAccessible(page, 'the palette');
  await palette.getByRole('textbox').fill('PLAN <b');
  await palette.getByText('papers/2026/ · 6 B').waitFor();
  await page.keyboard.press('Enter');
  await page
    .getByRole('dialog', { name: 'plan <b>.txt' })
    .getByText('2026/plan <b>.txt', { exact: true })
    .waitFor();
  await page.keyboard.press('Escape');

  await page.getByRole('dialog').waitFor({ state: 'detached' });
  await page.keyboard.press('Control+k');
  await palette.waitFor();
  await palette.getByRole('textbox').fill('key access');
  await palette.getByRole('button', { name: 'Create access key' }).click();
  await page.getByRole('dialog', { name: 'Create access key' }).getByLabel('Name').waitFor();
});

test('a machine and a database are made with the keyboard alone', { skip }, async () => {
  const isFocused = (name: string) =>
    page.evaluate(`[...document.activeElement.labels ?? [], document.activeElement]
      .some(({ textContent }) => textContent.trim() === '${name}')`);
  const tabTo = async (name: string) => {
    for (let steps = 0; steps < 80; steps++) {
      if (await isFocused(name)) return;
      await page.keyboard.press('Tab');
    }
    assert.fail(`${name} is not reached with the Tab key`);
  };
  for (const [area, name] of [
    ['databases', 'Create database'],
    ['machines', 'Create machine'],
  ] as const) {
    await open(`/${area}`);
    await page.getByRole('link', { name }).first().waitFor();
    await tabTo(name);
    await page.keyboard.press('Enter');
    await page.getByLabel('Name', { exact: true }).waitFor();
    await page.locator('h1:focus', { hasText: name }).waitFor();
    await tabTo('Name');
    await page.keyboard.type('by-keyboard');
    if (area === 'machines') {
      await tabTo('Start immediately');
      await page.keyboard.press('Space');
    }
    await tabTo(name);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'by-keyboard' }).waitFor();
  }
});

test('a wrong password is told at its field', { skip }, async () => {
  await open('/account');
  await page.getByLabel('New password').fill('a new pass phrase');
  await page.getByLabel('Current password').fill('not this');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('This password is incorrect').waitFor();
  assert.equal(await page.getByRole('alert').count(), 0, 'it is said more than once');
});

test('menus and windows can be used by everybody, and give the focus back', { skip }, async () => {
  const { api_key } = (await askIn(page, '/api/account')) as Account;
  const chief = user.as(api_key);
  const key = { name: 'backup', scopes: ['storage:read'] };
  await chief.expect(201, '/api/account/access-keys', { json: key });
  const [point] = await chief.expect(200, '/api/disaster-recovery/points');
  const menuOf = (name: string) => `Actions for ${name}`;
  const openers: Readonly<Record<string, readonly [string, ...string[]][]>> = {
    '/account': [['Signed in as chief'], ['Create access key']],
    '/recovery': [['Details'], ['Edit schedule']],
    '/administration?tab=accounts': [
      ['Create account'],
      ...['Give credits', 'Plan and limits', 'Suspend'].map((item): [string, string] => [
        menuOf(username),
        item,
      ]),
    ],
    '/administration?tab=plans': [['Create plan'], ['Edit']],
    '/administration?tab=prices': [['Set price']],
    '/administration?tab=images': [['Add image']],
    '/webhooks': [['Create webhook']],
  };
  for (const [path, clicks] of Object.entries(openers)) {
    await open(path);
    for (const [opener, ...items] of clicks) await assertOpens(page, opener, ...items);
  }
  const questions: typeof openers = {
    '/account': [['Replace API key'], ['Revoke backup']],
    '/recovery': [[menuOf(point.point_id), 'Delete']],
    '/administration?tab=plans': [['Delete']],
    '/administration?tab=upkeep': [['Rotate master key']],
  };
  for (const [path, clicks] of Object.entries(questions)) {
    await open(path);
    for (const [opener, ...items] of clicks) await assertAsks(page, opener, ...items);
  }
});

test('axe finds nothing on these pages, in both themes', { skip }, async () => {
  for (const path of PAGES) {
    await open(path);
    await quiet(page);
    await assertAccessible(page, path);
  }
});

test('no page complained, and none asked another host', { skip }, () => {
  assert.deepEqual(fixture.complaints, []);
});
