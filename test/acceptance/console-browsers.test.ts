/** Drops of real files and folders in Chromium and Firefox, and the browser classes that the console uses. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { type Account, Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import {
  assertConsoleBuilt,
  ConsoleFixture,
  clientOf,
  dropFiles,
  PASSWORD,
  uploaded,
  writtenFiles,
} from './console-kit.ts';
import { Firefox } from './firefox-kit.ts';

const DROPPED = { 'alone.txt': 'one', 'trip/day.txt': 'two', 'trip/photos/2026/sea.txt': 'three' };
/** The page, and the stored files of its drops. */
const PLACES = ['/storage', '/'];

const SOURCES = join(import.meta.dirname, '../../console/src');

/**
 * Classes of the browser that sources use outside types: `instanceof File`, `new WebSocket(…)`. Code shown to
 * users, which starts a string, is not the console's own.
 */
function askedClasses(): string[] {
  const files = globSync('**/*.{ts,tsx}', { cwd: SOURCES }).filter((path) => !path.endsWith('.test.ts'));
  const classes = files.flatMap((path) => {
    const source = readFileSync(join(SOURCES, path), 'utf8');
    const isOwn = (name: string) => new RegExp(`(?:import[^;]*|class )\\b${name}\\b`).test(source);
    const named = [...source.matchAll(/(?<![`'"])\b(?:instanceof|new) ([A-Z]\w+)\b(?! \w)/g)].map(
      ([, name = '']) => name,
    );
    return named.filter((name) => !isOwn(name));
  });
  return [...new Set(classes)].sort();
}

/** An expression: the classes that this browser has not, joined by commas. */
const MISSING = `${JSON.stringify(askedClasses())}.filter((name) => !(name in window)).join()`;

async function storedNames(client: Client): Promise<string[]> {
  const { body } = await client.call('/api/buckets/uploads/files');
  return body.map(({ name }: { name: string }) => name).sort();
}

test('Chromium has every class that is asked for, and takes a file and a folder with folders in it, dropped together', {
  skip: noBrowser,
}, async () => {
  const fixture = await ConsoleFixture.open();
  try {
    assert.equal(await (await fixture.newPage()).evaluate(MISSING), '');
    for (const [i, path] of PLACES.entries()) {
      const page = await fixture.signedUp(`chromium-${i}`, path);
      await dropFiles(page, DROPPED);
      await uploaded(page, 3);
      assert.deepEqual(await storedNames(await clientOf(fixture, page)), Object.keys(DROPPED), path);
      await page.close();
    }
    assert.deepEqual(fixture.complaints, []);
  } finally {
    await fixture.close();
  }
});

/** Creates an account and signs the browser in; returns the API as that account. */
async function signIn(firefox: Firefox, cloud: CloudProcess, username: string): Promise<Client> {
  await firefox.goto(`${cloud.api}/sign-in`);
  const send = async (path: string, body: object): Promise<Account> => {
    const init = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    };
    return JSON.parse(
      String(await firefox.evaluate(`fetch('${path}', ${JSON.stringify(init)}).then((a) => a.text())`)),
    );
  };
  const identity = { username, password: PASSWORD };
  const { api_key } = await send('/api/register', { ...identity, email: `${username}@example.org` });
  const { session_token } = (await send('/api/login', identity)) as Account & { session_token: string };
  await firefox.evaluate(`localStorage.setItem('cloudlet-session', '${session_token}')`);
  assert.ok(api_key, `${username} has no account`);
  return new Client(cloud.api, api_key);
}

/** Resolves when the expression is true in the page. */
const focused = (firefox: Firefox, selector: string) =>
  firefox.holds(`the focus is on ${selector}`, `document.activeElement.matches('${selector}')`);

describe('Firefox', { skip: notInstalled('firefox-esr') }, () => {
  let cloud: CloudProcess;
  let firefox: Firefox;
  before(async () => {
    assertConsoleBuilt();
    cloud = await CloudProcess.start();
    firefox = await Firefox.open();
  });
  beforeEach(() => firefox.startAfresh());
  after(async () => {
    await firefox?.close();
    await cloud?.stop();
  });

  test('has them too, and takes a file, then a folder', async () => {
    assert.equal(await firefox.evaluate(MISSING), '');
    for (const [i, path] of PLACES.entries()) {
      const client = await signIn(firefox, cloud, `firefox-${i}`);
      await firefox.goto(cloud.api + path);
      await firefox.says('Storage');
      const [file = '', folder = ''] = writtenFiles(DROPPED);
      await firefox.drop(file);
      await firefox.says('1 of 1 uploaded');
      await firefox.drop(folder);
      await firefox.says('3 of 3 uploaded');
      assert.deepEqual(await storedNames(client), Object.keys(DROPPED), path);
    }
    assert.deepEqual(firefox.complaints, []);
  });

  test('is used with the keyboard: the sign-in form, the palette, cut and paste, and a query', async () => {
    const identity = { username: 'typist', password: PASSWORD, email: 'typist@example.org' };
    const anyone = new Client(cloud.api);
    const { body: account } = await anyone.call('/api/register', { json: identity });
    const owner = new Client(cloud.api, account.api_key);
    const { body: database } = await owner.call('/api/databases', { json: { name: 'typed' } });

    await firefox.goto(`${cloud.api}/sign-in`);
    await firefox.says('Welcome back.');
    await firefox.evaluate(`document.querySelector('[autocomplete=username]').focus()`);
    await firefox.type('typist');
    await firefox.press('Tab');
    await focused(firefox, '[autocomplete=current-password]');
    await firefox.type(PASSWORD);
    await firefox.press('Enter');
    await firefox.says('Overview');

    await firefox.press('Control+k');
    await focused(firefox, '[role=dialog] input');
    await firefox.type('typed');
    for (const key of ['a', 'x', 'v', 'v']) await firefox.press(`Control+${key}`);
    const written = () => firefox.evaluate('document.activeElement.value');
    assert.equal(await written(), 'typedtyped');
    for (const key of ['a', 'x']) await firefox.press(`Control+${key}`);
    await firefox.type('typed');
    const found = `/typed/.test(document.querySelector('[role=dialog]').innerText)`;
    await firefox.holds('the palette shows the database', found);
    await firefox.press('Enter');
    await firefox.holds('it opens', `location.pathname === '/databases/${database.database_id}'`);
    // Firefox reports an error if a page is left while its parts are loading: wait, and stay on it.
    await firefox.says('Connection string');
    const tab = `[...document.querySelectorAll('[role=tab]')].find((tab) => tab.innerText === 'Query')`;
    await firefox.evaluate(`${tab}.click()`);
    await firefox.holds('the editor is shown', `document.querySelector('.cm-content') !== null`);
    await firefox.evaluate(`document.querySelector('.cm-content').focus()`);
    await firefox.press('Control+a');
    await firefox.type("select 'by ' || 'hand' as written");
    await firefox.press('Escape');
    await firefox.press('Control+Enter');
    await firefox.says('by hand');
    assert.deepEqual(firefox.complaints, []);
  });

  test('chooses, renames and deletes files with the keyboard', async () => {
    const owner = await signIn(firefox, cloud, 'filer');
    await owner.call('/api/buckets', { json: { name: 'filed', versioning: true } });
    for (const name of ['a.txt', 'b.txt']) await owner.upload('filed', name, name);
    const names = async () =>
      (await owner.call('/api/buckets/filed/files')).body.map(({ name }: { name: string }) => name).join(' ');
    await firefox.goto(`${cloud.api}/storage/filed`);
    await firefox.says('b.txt');
    await firefox.evaluate(`document.querySelector('[role=row] a').focus()`);
    await firefox.press('ArrowDown');
    await firefox.holds('the arrow leads on', `document.activeElement.innerText === 'b.txt'`);
    await firefox.press('x');
    await firefox.says('1 selected');
    await firefox.press('Control+ ');
    await firefox.holds('none is selected', `!document.body.innerText.includes('selected')`);
    const panel = `document.querySelector('[role=dialog][data-beside]')`;
    await firefox.press(' ');
    await firefox.holds('it is shown', `${panel}?.querySelector('h2').innerText === 'b.txt'`);
    await firefox.press(' ');
    await firefox.holds('it is shown no longer', `${panel} === null`);
    await firefox.holds('the row has the focus', `document.activeElement.innerText === 'b.txt'`);
    await firefox.press('F2');
    await focused(firefox, '[role=dialog] input');
    await firefox.type('c');
    await firefox.press('Enter');
    await eventually('b.txt is c.txt', async () => (await names()) === 'a.txt c.txt');
    await firefox.says('Renamed: b.txt');
    await firefox.holds('it is shown', `document.querySelector('[role=table]').innerText.includes('c.txt')`);
    await firefox.evaluate(`document.querySelector('[role=row] a').focus()`);
    await firefox.press('Control+a');
    await firefox.says('2 selected');
    await firefox.press('Delete');
    await firefox.says('Delete 2 files?');
    await firefox.holds('Cancel has the focus', `document.activeElement.innerText === 'Cancel'`);
    await firefox.press('Enter');
    await firefox.holds('it is closed', `document.querySelector('[role=dialog]') === null`);
    assert.equal(await names(), 'a.txt c.txt');
    assert.deepEqual(firefox.complaints, []);
  });

  test('makes an S3 key with the keyboard, tests it, and shows each tab of a bucket', async () => {
    const button = (name: string) =>
      `[...document.querySelectorAll('button')].findLast((each) => each.innerText.trim() === '${name}')`;
    const press = async (name: string) => {
      await firefox.holds(`there is ${name}`, `${button(name)} !== undefined`);
      await firefox.evaluate(`${button(name)}.click()`);
    };
    const owner = await signIn(firefox, cloud, 'keeper');
    await owner.call('/api/buckets', { json: { name: 'shown' } });
    await firefox.goto(`${cloud.api}/storage/s3`);
    await press('Create S3 key');
    await focused(firefox, '[role=dialog] input');
    await firefox.type('by hand');
    await firefox.press('Enter');
    await firefox.says('by hand was created');
    await press('Test connection');
    await firefox.says('The key works.');
    await press('I have stored it');

    await firefox.goto(`${cloud.api}/storage/shown`);
    await firefox.says('Uploads in progress');
    const names = JSON.parse(
      String(
        await firefox.evaluate(
          `JSON.stringify([...document.querySelectorAll('[role=tab]')].map((tab) => tab.dataset.tab))`,
        ),
      ),
    );
    assert.deepEqual(names, ['objects', 'links', 'uploads', 'recovery', 'settings']);
    for (const name of names) {
      await firefox.evaluate(`document.querySelector('[data-tab=${name}]').click()`);
      const panel = `document.querySelector('[role=tabpanel]:not([style*=none])')`;
      const shown = `${panel} !== null && ${panel}.innerText.length > 20 && ${panel}.querySelector('[aria-busy=true]') === null`;
      await firefox.holds(`the tab ${name} has content`, shown);
    }
    assert.deepEqual(firefox.complaints, []);
  });

  test('edits a document of MongoDB with the keyboard, and takes no number for another', async () => {
    const owner = await signIn(firefox, cloud, 'editor');
    const { body: made } = await owner.call('/api/databases', {
      json: { name: 'papers', engine: 'mongodb' },
    });
    const path = `/api/databases/${made.database_id}/rows`;
    const values = { _id: 'first', n: 1 };
    const body = { json: { table: 'notes', changes: [{ action: 'insert', values }] } };
    assert.equal(
      (
        await owner.call(`/api/databases/${made.database_id}/query`, {
          json: { command: { create: 'notes' }, read_only: false },
        })
      ).status,
      200,
    );
    assert.equal((await owner.call(`${path}/change`, body)).status, 200);
    await firefox.goto(`${cloud.api}/databases/${made.database_id}?tab=tables`);
    const edit = `document.querySelector('[aria-label="Edit first"]')`;
    await firefox.holds('the document is there', `${edit} !== null`);
    await firefox.evaluate(`${edit}.focus()`);
    await firefox.press('Enter');
    await focused(firefox, '[role=dialog] textarea');
    await firefox.press('Control+a');
    await firefox.type('{"_id":"first","n":9007199254740993,"d":1.0}');
    await firefox.press('Control+Enter');
    await firefox.says('Review 1 change');
    const review = `[...document.querySelectorAll('button')].find((each) => each.innerText === 'Review 1 change')`;
    await firefox.evaluate(`${review}.focus()`);
    await firefox.press('Enter');
    await firefox.says('"update":"notes"');
    await firefox.holds('Cancel has the focus', `document.activeElement.innerText === 'Cancel'`);
    await firefox.press('Tab');
    await firefox.press('Enter');
    await firefox.says('1 row changed');
    const { body: page } = await owner.call(`${path}/read`, { json: { table: 'notes' } });
    assert.deepEqual(page.rows[0][0], {
      _id: 'first',
      n: { $numberLong: '9007199254740993' },
      d: { $numberDouble: '1.0' },
    });
    assert.deepEqual(firefox.complaints, []);
  });
});
