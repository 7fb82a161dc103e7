/** A developer's day by the page alone, with the keyboard, in Chromium and in Firefox. */
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertConsoleBuilt, ConsoleFixture, PASSWORD, writtenFiles } from './console-kit.ts';
import { Firefox } from './firefox-kit.ts';
import { ChromiumHands, type Hands, named } from './hands.ts';
import { cannotRunGuests, removeAll } from './vms-kit.ts';

const run = promisify(execFile);
const noGuests = cannotRunGuests() || notInstalled('ssh', 'ssh-keygen');
const DROPPED = { 'alone.txt': 'one', 'trip/day.txt': 'two', 'trip/photos/sea.txt': 'three' };
const LINK_PASSWORD = 'open sesame';
const MADE = `CREATE TABLE books (id INTEGER PRIMARY KEY, title TEXT); INSERT INTO books VALUES (1, 'Emma'), (2, 'Persuasion')`;
const QUERY = 'SELECT title FROM books ORDER BY title';

const folder = mkdtempSync(join(tmpdir(), 'cloudlet-day-'));
const keyFile = join(folder, 'key');
before(() => {
  if (!noGuests) execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'day', '-f', keyFile]);
});
after(() => rmSync(folder, { recursive: true, force: true }));

interface Day {
  readonly hands: Hands;
  readonly cloud: CloudProcess;
  /** Whose day it is. */
  readonly name: string;
  /** What the page said as an error, or threw. */
  readonly complaints: () => readonly string[];
  /** The API as the developer, to see whether it is true what the page says. */
  user: CheckedClient;
}

const closed = ({ hands }: Day) =>
  hands.holds('no window is open', `document.querySelector('[role=dialog]') === null`);

/** Leads to a page; one that has just come may take the focus from the link before the key is pressed. */
async function go({ hands }: Day, area: string): Promise<void> {
  const link = named('nav[aria-label=Main] a', area);
  await eventually(`${area} is shown`, async () => {
    if (await hands.evaluate(`${link}?.getAttribute('aria-current') === 'page'`)) return true;
    await hands.evaluate(`${link}?.focus()`);
    if (await hands.evaluate(`document.activeElement === ${link}`)) await hands.press('Enter');
    return false;
  });
}

/** Goes down what is open, key by key, until that is marked, and takes it. */
async function take({ hands }: Day, what: string, isMarked: string): Promise<void> {
  await eventually(`${what} is marked`, async () => {
    if (await hands.evaluate(isMarked)) return true;
    await hands.press('ArrowDown');
    return false;
  });
  await hands.press('Enter');
}

/** Opens a menu and takes one of its items. */
async function choose(day: Day, menu: string, item: string): Promise<void> {
  await day.hands.pressOn('button', menu);
  await day.hands.holds(`${item} is there`, `${named('[role=menuitem]', item)} !== undefined`);
  await take(day, item, `document.activeElement === ${named('[role=menuitem]', item)}`);
}

async function signUp(day: Day): Promise<void> {
  const { hands, cloud, name } = day;
  await hands.goto(`${cloud.api}/sign-up`);
  await hands.fill('User name', name);
  await hands.fill('E-mail address', `${name}@example.org`);
  await hands.fill('Password', PASSWORD);
  await hands.press('Enter');
  await hands.holds('the page is in', `document.querySelector('nav[aria-label=Main]') !== null`);
  const asked = `fetch('/api/account', { headers: { 'cloudlet-session': localStorage.getItem('cloudlet-session') } })`;
  const { api_key } = JSON.parse(String(await hands.evaluate(`${asked}.then((answer) => answer.text())`)));
  day.user = day.user.as(api_key);
}

async function upload(day: Day): Promise<void> {
  const { hands, user } = day;
  await go(day, 'Storage');
  await hands.says('No buckets yet');
  await hands.drop(...writtenFiles(DROPPED));
  await hands.says('3 of 3 uploaded');
  const files = await user.expect(200, '/api/buckets/uploads/files');
  assert.deepEqual(files.map((each: { name: string }) => each.name).sort(), Object.keys(DROPPED));
}

/** A link with an end, a password and a count. */
async function share(day: Day): Promise<void> {
  const { hands, user } = day;
  await choose(day, 'Actions for trip/', 'Share');
  await hands.focus('[role=dialog] input', 'Link expires after');
  const chosen = `${named('[role=dialog] input', 'Link expires after')}.value`;
  await hands.press('ArrowDown');
  await hands.holds('terms are shown', `${named('[role=option]', '30 days')} !== undefined`);
  const marked = `document.querySelector('[role=option][data-combobox-selected]')?.textContent`;
  await take(day, '30 days', `${marked} === '30 days'`);
  await hands.holds('30 days are chosen', `${chosen} === '30 days'`);
  await hands.fill('Password', LINK_PASSWORD);
  await hands.fill('Maximum downloads', '2');
  await hands.press('Enter');
  await hands.says('see and download everything in this folder');
  const url = String(await hands.evaluate(`${named('[role=dialog] input', 'Link')}.value`));
  await hands.press('Escape');
  await closed(day);
  const [link] = await user.expect(200, '/api/shares');
  assert.deepEqual([link.name, link.max_downloads, link.url], ['trip/', 2, url]);
  const days = (Date.parse(`${link.expires_at.replace(' ', 'T')}Z`) - Date.now()) / 86_400_000;
  assert.ok(days > 29 && days <= 30, `it ends in ${days} days`);
  const authorization = `Basic ${Buffer.from(`anybody:${LINK_PASSWORD}`).toString('base64')}`;
  assert.deepEqual(
    [(await fetch(url)).status, (await fetch(url, { headers: { authorization } })).status],
    [401, 200],
  );
}

const typeStatement = async ({ hands }: Day, statement: string): Promise<void> => {
  await hands.evaluate(`document.querySelector('.cm-content').focus()`);
  await hands.press('Control+a');
  await hands.type(statement);
  // Closes what the editor proposes.
  await hands.press('Escape');
};

/** Makes a database, runs statements, reads a plan, and keeps a query under a name. */
async function query(day: Day): Promise<void> {
  const { hands } = day;
  await go(day, 'Databases');
  await hands.pressOn('main a', 'Create database');
  await hands.retype('Name', 'library');
  await hands.press('Enter');
  await hands.says('Connection string');
  await hands.pressOn('[role=tab]', 'Query');
  await hands.holds('the editor is shown', `document.querySelector('.cm-content') !== null`);
  await hands.pressOn('input[type=checkbox]', 'Read-only', ' ');
  await typeStatement(day, MADE);
  await hands.press('Control+Enter');
  await hands.says('2 changed');
  await typeStatement(day, QUERY);
  await hands.press('Control+Enter');
  await hands.says('Persuasion');
  await hands.pressOn('button', 'Explain');
  await hands.says('SCAN books');
  await choose(day, 'Saved', 'Save query…');
  await hands.holds('a name is asked for', `document.activeElement.matches('[role=dialog] input')`);
  await hands.type('all books');
  await hands.press('Enter');
  await hands.says('all books was saved');
  await closed(day);
  await typeStatement(day, 'SELECT 1');
  await hands.pressOn('button', 'Saved');
  const saved = `[...document.querySelectorAll('[role=menuitem]')].find((one) => one.innerText.startsWith('all books'))`;
  await hands.holds('it is listed', `${saved} !== undefined`);
  await take(day, 'the query', `document.activeElement === ${saved}`);
  await hands.holds(
    'it is in the editor again',
    `document.querySelector('.cm-content').innerText.includes('ORDER BY title')`,
  );
}

async function editRow(day: Day): Promise<void> {
  const { hands, user } = day;
  await hands.pressOn('[role=tab]', 'Tables');
  await hands.focus('[role=gridcell]', 'Emma');
  await hands.press('Enter');
  await hands.holds('a field is open', `document.activeElement.matches('[role=grid] input')`);
  await hands.press('Control+a');
  await hands.type('Lady Susan');
  await hands.press('Enter');
  await hands.pressOn('button', 'Review 1 change');
  await hands.says('UPDATE "books" SET "title" =');
  await hands.holds('Cancel has the focus', `document.activeElement.innerText === 'Cancel'`);
  await hands.press('Tab');
  await hands.press('Enter');
  await hands.says('1 row changed');
  const [{ database_id: id }] = await user.expect(200, '/api/databases');
  const { rows } = await user.expect(200, `/api/databases/${id}/query`, { json: { statement: QUERY } });
  assert.deepEqual(rows, [['Lady Susan'], ['Persuasion']]);
}

const SCREEN = `document.querySelector('.xterm-rows')?.innerText ?? ''`;

/** As long as the guest writes more, its boot goes on: on a busy host it takes minutes. */
async function guestShows({ hands }: Day, wanted: RegExp): Promise<void> {
  for (let seen = ''; !wanted.test(seen); ) {
    seen = await eventually('the guest writes more', async () => {
      const now = String(await hands.evaluate(SCREEN));
      return now === seen ? undefined : now;
    });
  }
}

/** A machine with a key that is kept by name boots, and is typed into over its serial console. */
async function boot(day: Day): Promise<void> {
  const { hands } = day;
  await go(day, 'Machines');
  await hands.pressOn('main a', 'Create machine');
  await hands.fill('Name', 'workbench');
  await hands.pressOn('button', 'Save an SSH key');
  await hands.fill('Name of the key', 'laptop');
  await hands.fill('Public key', readFileSync(`${keyFile}.pub`, 'utf8').trim());
  await hands.pressOn('[role=dialog] button[type=submit]', 'Save an SSH key');
  await closed(day);
  await hands.holds('the key is chosen', `${named('input[type=checkbox]', 'laptop')}?.checked === true`);
  await hands.pressOn('button[type=submit]', 'Create and start');
  await hands.says('Connected');
  await guestShows(day, /root@.*#/);
  await hands.evaluate(`document.querySelector('.xterm-helper-textarea').focus()`);
  await hands.type('uname -s; echo $((6*7))-done');
  await hands.press('Enter');
  await guestShows(day, /Linux[\s\S]*42-done/);
  await hands.press('Control+.');
  await hands.holds('the keys leave the console', `document.activeElement.textContent === 'Paste'`);
}

/** The command of the page, as it is typed into a terminal. */
async function logIn({ hands }: Day): Promise<void> {
  await hands.pressOn('[role=tab]', 'Overview');
  await hands.says('Run this command in a terminal');
  const shown = `[...document.querySelectorAll('main pre')].find((line) => line.innerText.startsWith('ssh '))?.innerText`;
  const command = await eventually('the command is shown', async () => {
    const text = await hands.evaluate(shown);
    return typeof text === 'string' ? text.trim() : undefined;
  });
  const [program = '', ...words] = command.split(' ');
  const fixed = ['StrictHostKeyChecking=no', 'UserKnownHostsFile=/dev/null', 'IdentitiesOnly=yes'];
  const options = fixed.flatMap((option) => ['-o', option]);
  const log = [...options, '-i', keyFile, ...words, 'hostname'];
  const said = await eventually('the guest listens', () =>
    run(program, log).then(
      ({ stdout }) => stdout,
      // On a busy host its shell is there minutes before its SSH server.
      ({ stderr }) => (/closed|refused|reset/i.test(stderr) ? undefined : assert.fail(stderr)),
    ),
  );
  assert.equal(said.trim(), 'workbench');
}

async function lookAtCost(day: Day): Promise<void> {
  const { hands } = day;
  await go(day, 'Billing');
  await hands.says('Resources in use');
  const rows = `[...document.querySelectorAll('main tbody tr')].map((row) => row.innerText.replace(/\\s+/g, ' ')).join('\\n')`;
  await hands.holds('the machine and its price', `/workbench running time 0\\.01\\d* /.test(${rows})`);
  await hands.says('This month so far');
  await go(day, 'Overview');
  await hands.says('1 running');
}

async function wholeDay(day: Day): Promise<void> {
  await signUp(day);
  await upload(day);
  await share(day);
  await query(day);
  await editRow(day);
  await boot(day);
  await logIn(day);
  await lookAtCost(day);
  assert.deepEqual(day.complaints(), []);
}

describe('a day: upload, share, query, edit, boot, log in, cost', () => {
  test('in Chromium', { skip: noBrowser || noGuests }, async () => {
    const fixture = await ConsoleFixture.open();
    const { cloud } = fixture;
    const hands = new ChromiumHands(await fixture.newPage());
    const user = await CheckedClient.open(cloud.api);
    const day: Day = { hands, cloud, name: 'ada', complaints: () => fixture.complaints, user };
    try {
      await wholeDay(day);
    } finally {
      await removeAll(day.user);
      await fixture.close();
    }
  });

  test('in Firefox', { skip: notInstalled('firefox-esr') || noGuests }, async () => {
    assertConsoleBuilt();
    const cloud = await CloudProcess.start();
    const firefox = await Firefox.open();
    const user = await CheckedClient.open(cloud.api);
    const day: Day = { hands: firefox, cloud, name: 'ada', complaints: () => firefox.complaints, user };
    try {
      await firefox.startAfresh();
      await wholeDay(day);
    } finally {
      await firefox.close();
      await removeAll(day.user);
      await cloud.stop();
    }
  });
});
