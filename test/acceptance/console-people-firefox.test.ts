/** The class in Firefox, using the page only, with the keyboard: the walk of console-people.test.ts. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { assertConsoleBuilt, PASSWORD, writtenFiles } from './console-kit.ts';
import { Firefox } from './firefox-kit.ts';
import { named } from './hands.ts';

const skip = notInstalled('firefox-esr');
const PUPILS = Array.from({ length: 30 }, (_, i) => `pupil-${String(i + 1).padStart(2, '0')}`);
const NEW_PASSWORD = 'quite another one';
const TABLE = ['username,email', ...PUPILS.map((name) => `${name},${name}@example.org`)].join('\n');

let cloud: CloudProcess;
let firefox: Firefox;
let admin: CheckedClient;
before(async () => {
  if (skip) return;
  assertConsoleBuilt();
  cloud = await CloudProcess.start();
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
  const json = { username: 'teacher', email: 'teacher@example.org', password: PASSWORD, is_admin: true };
  await admin.expect(201, '/api/admin/accounts', { json });
  firefox = await Firefox.open();
});
after(async () => {
  await firefox?.close();
  await cloud?.stop();
});

const closed = () => firefox.holds('no window is open', `document.querySelector('[role=dialog]') === null`);

/** The teacher's session is in a new tab: pupils open links in separate tabs. */
async function signIn(path: string): Promise<void> {
  await firefox.startAfresh();
  await firefox.goto(`${cloud.api}/sign-in?next=${encodeURIComponent(path)}`);
  await firefox.says('Welcome back.');
  await firefox.evaluate(`document.querySelector('[autocomplete=username]').focus()`);
  await firefox.type('teacher');
  await firefox.press('Tab');
  await firefox.type(PASSWORD);
  await firefox.press('Enter');
}

/** By the name of the invited person. */
let links: ReadonlyMap<string, string>;

test('the class is invited from a table', { skip }, async () => {
  await signIn('/administration?tab=invitations');
  await firefox.pressOn('button', 'Invite');
  await firefox.pressOn('[role=dialog] input[type=radio]', 'CSV table', ' ');
  await firefox.holds(
    'a file is asked for',
    `document.querySelector('[role=dialog] input[type=file], input[type=file]') !== null`,
  );
  const [file = ''] = writtenFiles({ 'class.csv': TABLE });
  await firefox.chooseFile('input[type=file]', file);
  await firefox.says('class.csv');
  await firefox.pressOn('[role=dialog] button[type=submit]', 'Invite');
  await firefox.says('30 invitations');
  const lines = String(
    await firefox.evaluate(`document.querySelector('[role=dialog] pre').textContent`),
  ).split('\n');
  await firefox.press('Escape');
  await closed();
  links = new Map(lines.map((line) => line.split('\t') as [string, string]));
  assert.deepEqual([...links.keys()], PUPILS);
  assert.deepEqual(firefox.complaints, []);
});

test('pupils join: one in the page, the rest as programs do', { skip }, async () => {
  const [first = '', ...rest] = PUPILS;
  await firefox.startAfresh();
  await firefox.goto(links.get(first) ?? '');
  await firefox.fill('Password', PASSWORD);
  await firefox.press('Enter');
  await firefox.holds('the pupil is in', `document.querySelector('nav[aria-label=Main]') !== null`);
  for (const name of rest) {
    const token = new URL(links.get(name) ?? '').hash.slice('#token='.length);
    await admin.as(undefined).expect(201, '/api/join', { json: { token, password: PASSWORD } });
  }
  assert.deepEqual(firefox.complaints, []);
});

test('all of them get a plan with limits', { skip }, async () => {
  await admin.expect(201, '/api/admin/plans', { json: { name: 'class' } });
  await signIn('/administration?tab=accounts&find=pupil');
  await firefox.pressOn('input[type=checkbox]', 'Select all 30', ' ');
  await firefox.says('30 accounts selected');
  await firefox.pressOn('[role=group] button', 'Plan');
  await firefox.says('Plan of 30 accounts');
  await firefox.holds('the field has the focus', `document.activeElement.matches('[role=dialog] input')`);
  await firefox.press('ArrowDown');
  await firefox.holds('plans are shown', `${named('[role=option]', 'class')} !== undefined`);
  await firefox.press('ArrowDown');
  await firefox.press('Enter');
  await firefox.holds('it is chosen', `document.querySelector('[role=dialog] input').value !== ''`);
  const chosen = String(await firefox.evaluate(`document.querySelector('[role=dialog] input').value`));
  await firefox.pressOn('[role=dialog] button[type=submit]', 'Change 30 accounts');
  await firefox.says('30 of 30 done');
  await firefox.press('Escape');
  await closed();
  const accounts = await admin.expect(200, '/api/admin/accounts');
  const plans = accounts.filter(({ username }: { username: string }) => PUPILS.includes(username));
  assert.deepEqual(new Set(plans.map(({ plan }: { plan: string }) => plan)), new Set([chosen]));

  assert.equal(plans.length, 30);
  assert.deepEqual(firefox.complaints, []);
});

test('a password is reset by a link', { skip }, async () => {
  await signIn('/administration?tab=accounts&find=pupil-02');
  await firefox.pressOn('button', 'Actions for pupil-02');
  await firefox.pressOn('[role=menuitem]', 'Reset link');
  await firefox.says('Reset link of pupil-02');
  await firefox.holds('it is shown', `document.querySelector('[role=dialog] pre') !== null`);
  const link = String(await firefox.evaluate(`document.querySelector('[role=dialog] pre').textContent`));
  await firefox.startAfresh();
  await firefox.goto(link);
  for (const label of ['New password', 'New password, again']) await firefox.fill(label, NEW_PASSWORD);
  await firefox.press('Enter');
  await firefox.says('The password is set');
  const login = (password: string) => ({ json: { username: 'pupil-02', password } });
  await admin.as(undefined).expect(200, '/api/login', login(NEW_PASSWORD));
  await admin.as(undefined).expect(401, '/api/login', login(PASSWORD));
  assert.deepEqual(firefox.complaints, []);
});

test('one is removed, with an export before, and the audit log shows it all', { skip }, async () => {
  await signIn('/administration?tab=accounts&find=pupil-03');
  await firefox.pressOn('input[type=checkbox]', 'Select pupil-03', ' ');
  await firefox.says('1 account selected');
  await firefox.pressOn('[role=group] button', 'Remove');
  await firefox.says('Remove 1 account?');
  await firefox.pressOn('[role=dialog] button', 'Download everything of pupil-03');
  await eventually('the export is in the audit log', async () => {
    const [entry] = await admin.expect(200, '/api/audit?account_id=all&action=adminExportAccount&limit=1');
    return entry?.outcome === 'done' && entry.actor === 'teacher';
  });
  await firefox.fill('Reason', 'has left');
  await firefox.press('Enter');
  await firefox.says('1 of 1 done');
  await firefox.press('Escape');
  await closed();
  const pupil = (await admin.expect(200, '/api/admin/accounts')).find(
    ({ username }: { username: string }) => username === 'pupil-03',
  );
  assert.match(pupil.suspended_reason, /has left/);

  await firefox.goto(`${cloud.api}/administration?tab=audit`);
  for (const action of [
    ...['adminImportInvitations', 'join', 'adminChangeAccount', 'adminCreateResetLink'],
    ...['adminExportAccount', 'adminRemoveAccount'],
  ]) {
    const field = named('input', 'Operation');
    await firefox.holds('the field is there', `${field} !== undefined`);
    await firefox.evaluate(`${field}.focus(), ${field}.select()`);
    await firefox.type(action);
    await firefox.press('Enter');
    await firefox.holds(`${action} is shown`, `${named('[role=cell], td', action)} !== undefined`);
  }
  assert.deepEqual(firefox.complaints, []);
});
