/** Lists of the console with the keys of the file list, in Chromium and Firefox. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertConsoleBuilt, ConsoleFixture, PASSWORD } from './console-kit.ts';
import { Firefox } from './firefox-kit.ts';
import { ChromiumHands, type Hands, named } from './hands.ts';

const NAMES = ['a', 'b', 'c', 'd'];

async function withMachines(cloud: CloudProcess): Promise<CheckedClient> {
  const anyone = await CheckedClient.open(cloud.api);
  const json = { username: 'lister', email: 'lister@example.org', password: PASSWORD };
  const user = anyone.as((await anyone.expect(201, '/api/register', { json })).api_key);
  for (const name of NAMES) await user.expect(201, '/api/vms', { json: { name, instance_type: 't2.micro' } });
  return user;
}

async function walk(hands: Hands, cloud: CloudProcess): Promise<void> {
  const user = await withMachines(cloud);
  const isAt = (name: string) =>
    hands.holds(`${name} has the focus`, `document.activeElement.textContent === '${name}'`);
  const closed = () => hands.holds('it is closed', `document.querySelector('[role=dialog]') === null`);
  await hands.goto(`${cloud.api}/sign-in?next=/machines?column=name`);
  await hands.says('Welcome back.');
  await hands.evaluate(`document.querySelector('[autocomplete=username]').focus()`);
  await hands.type('lister');
  await hands.press('Tab');
  await hands.type(PASSWORD);
  await hands.press('Enter');
  await hands.focus('tbody a', 'a');

  await hands.press('ArrowDown');
  await isAt('b');
  await hands.press(' ');
  await hands.says('1 machine selected');
  await hands.press('x');
  await hands.holds('none is selected', `!document.body.innerText.includes('selected')`);
  await hands.press('x');
  await hands.says('1 machine selected');
  await hands.press('Shift+ArrowDown');
  await isAt('c');
  await hands.says('2 machines selected');
  await hands.press('Delete');
  await hands.says('Delete 2 machines?');
  await hands.holds('Cancel has the focus', `document.activeElement.innerText === 'Cancel'`);
  await hands.press('Enter');
  await closed();
  await isAt('c');
  await hands.press('Control+a');
  await hands.says('4 machines selected');
  await hands.press('Escape');
  await hands.holds('none is selected', `!document.body.innerText.includes('selected')`);

  await hands.press('Delete');
  await hands.says('Delete 1 machine?');
  await hands.press('Escape');
  await closed();
  await isAt('c');
  await hands.press('F2');
  await hands.holds('the name is asked for', `document.activeElement.matches('[role=dialog] input')`);
  await hands.press('Control+a');
  await hands.type('renamed');
  await hands.press('Enter');
  await closed();
  await hands.holds('it is renamed', `${named('tbody a', 'renamed')} !== undefined`);
  await eventually('the cloud has it', async () =>
    (await user.expect(200, '/api/vms')).some(({ name }: { name: string }) => name === 'renamed'),
  );

  // Search in the list, and global search from anywhere.
  await hands.focus('tbody a', 'a');
  await hands.press('/');
  await hands.holds('the filter has the focus', `document.activeElement.matches('input[type=search]')`);
  await hands.type('renamed');
  await hands.holds('one is left', `document.querySelectorAll('tbody tr').length === 1`);
  await hands.press('Control+k');
  await hands.holds('the palette is open', `document.activeElement.matches('[role=dialog] input')`);
  await hands.press('Escape');
  await closed();
  await hands.holds('the filter has it again', `document.activeElement.matches('input[type=search]')`);
}

describe('a list of machines', () => {
  test('in Chromium', { skip: noBrowser }, async () => {
    const fixture = await ConsoleFixture.open();
    try {
      await walk(new ChromiumHands(await fixture.newPage()), fixture.cloud);
      assert.deepEqual(fixture.complaints, []);
    } finally {
      await fixture.close();
    }
  });

  test('in Firefox', { skip: notInstalled('firefox-esr') }, async () => {
    assertConsoleBuilt();
    const cloud = await CloudProcess.start();
    const firefox = await Firefox.open();
    try {
      await firefox.startAfresh();
      await walk(firefox, cloud);
      assert.deepEqual(firefox.complaints, []);
    } finally {
      await firefox.close();
      await cloud.stop();
    }
  });
});
