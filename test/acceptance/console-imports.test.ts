/** A foreign dump is loaded in Chromium and Firefox with their file inputs, and notes are shown. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { NO_POSTGRESQL, notInstalled } from '../../scripts/installed.ts';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, typeName } from './console-journey.ts';
import { assertConsoleBuilt, ConsoleFixture, clientOf, PASSWORD, writtenFiles } from './console-kit.ts';
import { Firefox } from './firefox-kit.ts';

/**
 * A dump by pg_dump, with a byte order mark and line ends of Windows, and lines that only its old server
 * supports.
 */
const DUMP = `\ufeff${[
  '-- PostgreSQL database dump',
  'SET transaction_timeout = 0;',
  'CREATE TABLE public.goods (id integer, name text);',
  'ALTER TABLE public.goods OWNER TO somebody;',
  "INSERT INTO public.goods VALUES (1, 'tea');",
  'GRANT SELECT ON public.goods TO readonly;',
  '-- PostgreSQL database dump complete',
  '',
].join('\r\n')}`;
const [FILE = ''] = writtenFiles({ 'shop.sql': DUMP });
/** Line and text of each note. */
const NOTES = [
  'Line 2: SET transaction_timeout',
  'Line 4: ALTER TABLE public.goods OWNER TO somebody',
  'Line 6: GRANT SELECT',
];
/** A folder for screenshots. */
const { PICTURES } = process.env;
const LEFT_OUT = '3 parts of the dump cannot be loaded here and were left out';

const MARKUP = '<img src=x onerror="window.broken=1">';
/** Hostile names and values; the type of the last column is changed before the import. */
const [ROWS = ''] = writtenFiles({
  'guests.csv': `\ufeffid;"na ""me";code\r\n1;"${MARKUP.replaceAll('"', '""')}";7\r\n2;"a;b";8\r\n`,
});

async function assertImported(client: Client, id: string): Promise<void> {
  const json = { statement: 'SELECT id, "na ""me", typeof(code), code FROM guests ORDER BY id' };
  const { body } = await client.call(`/api/databases/${id}/query`, { json });
  assert.deepEqual(body.rows, [
    [1, MARKUP, 'text', '7'],
    [2, 'a;b', 'text', '8'],
  ]);
}

async function sqliteOf(client: Client): Promise<string> {
  const { body } = await client.call('/api/databases', { json: { name: 'list', engine: 'sqlite' } });
  return body.database_id;
}

/** null: there is no PostgreSQL. */
async function newDatabase(client: Client): Promise<string | null> {
  const { body: engines } = await client.call('/api/database-engines');
  const about = engines.find(({ engine }: { engine: string }) => engine === 'postgresql');
  if (!about.available) return null;
  const json = { name: 'shop', engine: 'postgresql' };
  const { status, body } = await client.call('/api/databases', { json });
  assert.equal(status, 201, JSON.stringify(body));
  return body.database_id;
}

async function assertLoaded(client: Client, id: string): Promise<void> {
  const json = { statement: 'SELECT name FROM goods' };
  const { body } = await client.call(`/api/databases/${id}/query`, { json });
  assert.deepEqual(body.rows, [['tea']]);
}

function assertNotes(shown: string): void {
  for (const note of NOTES) assert.ok(shown.replaceAll(/\s+/g, ' ').includes(note), `${note} in ${shown}`);
}

describe('an import shows what it left out', () => {
  test('in Chromium', { skip: noBrowser }, async (t) => {
    const fixture = await ConsoleFixture.open();
    try {
      const page = await fixture.signedUp('chromium-import', '/');
      const client = await clientOf(fixture, page);
      const id = await newDatabase(client);
      if (id === null) return t.skip(NO_POSTGRESQL);
      await page.goto(`${fixture.cloud.api}/databases/${id}?tab=manage`);
      await page.locator('input[type=file]').setInputFiles(FILE);
      await typeName(page, 'shop');
      const alert = page.getByRole('alert').filter({ hasText: LEFT_OUT });
      await alert.waitFor();
      assertNotes(await alert.innerText());
      await assertAccessible(page, 'notes of a load');
      await assertLoaded(client, id);
      assert.deepEqual(fixture.complaints, []);
    } finally {
      await fixture.close();
    }
  });

  test('in Firefox', { skip: notInstalled('firefox-esr') }, async (t) => {
    assertConsoleBuilt();
    const cloud = await CloudProcess.start();
    const firefox = await Firefox.open();
    try {
      const client = await signedInto(firefox, cloud, 'firefox-import');
      const id = await newDatabase(client);
      if (id === null) return t.skip(NO_POSTGRESQL);
      await firefox.goto(`${cloud.api}/databases/${id}?tab=manage`);
      await firefox.says('Choose dump');
      await firefox.chooseFile('input[type=file]', FILE);
      await firefox.says('Load shop.sql?');
      await eventually('the name is asked for', async () => {
        await firefox.evaluate(`document.querySelector('[role=dialog] input').focus()`);
        return firefox.evaluate(`document.activeElement.matches('[role=dialog] input')`);
      });
      await firefox.type('shop');
      await firefox.press('Enter');
      await firefox.says(LEFT_OUT);
      assertNotes(String(await firefox.evaluate(`document.querySelector('main').innerText`)));
      await assertLoaded(client, id);
      assert.deepEqual(firefox.complaints, []);
    } finally {
      await firefox.close();
      await cloud.stop();
    }
  });
});

describe('rows of a CSV file are imported with types that were seen and changed', () => {
  test('in Chromium', { skip: noBrowser }, async () => {
    const fixture = await ConsoleFixture.open();
    try {
      const page = await fixture.signedUp('chromium-rows', '/');
      const client = await clientOf(fixture, page);
      const id = await sqliteOf(client);
      await page.goto(`${fixture.cloud.api}/databases/${id}?tab=manage`);
      await page.locator('input[type=file]').setInputFiles(ROWS);
      const window = page.getByRole('dialog', { name: 'Import guests.csv' });
      await window.getByText('There is no such table').waitFor();
      assert.equal(await window.getByLabel('Separator').inputValue(), ';');
      assert.equal(await window.getByLabel('Type of id').inputValue(), 'integer');
      await window.getByText(MARKUP, { exact: false }).waitFor();
      await window.getByLabel('Type of code').selectOption('text');
      await assertAccessible(page, 'an import');
      if (PICTURES !== undefined) await page.screenshot({ path: `${PICTURES}/import.png` });
      await window.getByRole('button', { name: 'Import rows' }).click();
      await window.waitFor({ state: 'detached' });
      await page.getByText('2 rows added to guests').waitFor();
      await assertImported(client, id);
      assert.equal(await page.evaluate('window.broken'), undefined);
      await page.goto(`${fixture.cloud.api}/databases/${id}?tab=tables`);
      await page.getByRole('button', { name: 'Export' }).click();
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('menuitem', { name: 'JSON lines' }).click(),
      ]);
      assert.equal(download.suggestedFilename(), 'list-guests.jsonl');
      const lines = readFileSync(await download.path(), 'utf8')
        .trimEnd()
        .split('\n');
      assert.deepEqual(
        lines.map((line) => JSON.parse(line)['na "me']),
        [MARKUP, 'a;b'],
      );
      assert.deepEqual(fixture.complaints, []);
    } finally {
      await fixture.close();
    }
  });
});

/** Signed in to the console with a new account. */
async function signedInto(firefox: Firefox, cloud: CloudProcess, username: string): Promise<Client> {
  const identity = { username, password: PASSWORD };
  const api = await CheckedClient.open(cloud.api);
  const json = { ...identity, email: `${username}@example.org` };
  const { api_key: key } = await api.expect(201, '/api/register', { json });
  await firefox.goto(`${cloud.api}/sign-in`);
  const login = JSON.stringify({
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(identity),
  });
  await firefox.evaluate(
    `fetch('/api/login', ${login}).then((answer) => answer.json()).then(({ session_token }) =>
       localStorage.setItem('cloudlet-session', session_token))`,
  );
  return api.as(key);
}
