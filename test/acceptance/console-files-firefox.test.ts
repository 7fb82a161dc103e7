/** Files in Firefox, by page and keyboard: links, the size of a folder, settings of a bucket. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { assertConsoleBuilt, PASSWORD } from './console-kit.ts';
import { Firefox } from './firefox-kit.ts';
import { named } from './hands.ts';

const skip = notInstalled('firefox-esr');
const LINK_PASSWORD = 'open sesame';

let cloud: CloudProcess;
let firefox: Firefox;
let user: Client;
before(async () => {
  if (skip) return;
  assertConsoleBuilt();
  cloud = await CloudProcess.start();
  const json = { username: 'sharer', email: 'sharer@example.org', password: PASSWORD };
  const { body } = await new Client(cloud.api).call('/api/register', { json });
  user = new Client(cloud.api, body.api_key);
  await user.call('/api/buckets', { json: { name: 'trip' } });
  for (const name of ['days/one.txt', 'days/in/two.txt']) await user.upload('trip', name, 'x'.repeat(1024));
  firefox = await Firefox.open();
  await firefox.startAfresh();
  await firefox.goto(`${cloud.api}/sign-in?next=/storage/trip`);
  await firefox.says('Welcome back.');
  await firefox.evaluate(`document.querySelector('[autocomplete=username]').focus()`);
  await firefox.type('sharer');
  await firefox.press('Tab');
  await firefox.type(PASSWORD);
  await firefox.press('Enter');
  await firefox.says('days');
});
after(async () => {
  await firefox?.close();
  await cloud?.stop();
});

test('a folder is counted from its menu', { skip }, async () => {
  await firefox.pressOn('button', 'Actions for days/');
  await firefox.pressOn('[role=menuitem]', 'Calculate size');
  await firefox.says('2.00 KB');
});

test('a link to a folder has a password and a count, is listed and ended', { skip }, async () => {
  await firefox.pressOn('button', 'Actions for days/');
  await firefox.pressOn('[role=menuitem]', 'Share');
  // Otherwise the space in the password may press the button that closes the dialog.
  await firefox.holds('the window has the focus', `document.activeElement.closest('[role=dialog]') !== null`);
  await firefox.fill('Password', LINK_PASSWORD);
  await firefox.fill('Maximum downloads', '2');
  await firefox.press('Enter');
  await firefox.says('see and download everything in this folder');
  await firefox.says('The link works only on this computer');
  const url = String(await firefox.evaluate(`${named('[role=dialog] input', 'Link')}.value`));
  const authorization = `Basic ${Buffer.from(`anybody:${LINK_PASSWORD}`).toString('base64')}`;
  const opened = async (headers = {}) => (await fetch(url, { headers })).status;
  assert.deepEqual([await opened(), await opened({ authorization })], [401, 200]);
  await firefox.press('Escape');
  await firefox.holds('no window is open', `document.querySelector('[role=dialog]') === null`);
  await firefox.pressOn('[role=tab]', 'Links');
  await firefox.says('0 of 2');
  await firefox.pressOn('button', 'End link to days/');
  await firefox.says('No shared links');
  assert.equal(await opened({ authorization }), 403);
});

test('settings of the bucket are one tab with sections', { skip }, async () => {
  await firefox.goto(`${cloud.api}/storage/trip?tab=tags`);
  await firefox.says('No tags yet.');
  assert.match(String(await firefox.evaluate('location.href')), /\?tab=settings#tags$/);
  await firefox.pressOn('nav a', 'Audit logBucket changes');
  await firefox.says('It can also record who wrote and read its files.');
  const marked = `[...document.querySelectorAll('[data-section][aria-current]')].map((link) => link.dataset.section).join()`;
  await firefox.holds('its section is marked', `${marked} === 'audit'`);
  assert.match(String(await firefox.evaluate('location.hash')), /^#audit$/);
  assert.deepEqual(firefox.complaints, []);
});
