/** A dump of somebody else's is loaded in Chromium and Firefox by their file inputs, and notes are shown. */
import assert from 'node:assert/strict';
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

/** pg_dump's, with a mark and line ends of Windows, and lines that only its old server could have. */
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
/** Line in the file and text of each note. */
const NOTES = [
  'Line 2: SET transaction_timeout',
  'Line 4: ALTER TABLE public.goods OWNER TO somebody',
  'Line 6: GRANT SELECT',
];
const LEFT_OUT = '3 parts of the dump cannot exist here and were left out';

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
      const identity = { username: 'firefox-import', password: PASSWORD };
      const api = await CheckedClient.open(cloud.api);
      const json = { ...identity, email: 'firefox-import@example.org' };
      const { api_key: key } = await api.expect(201, '/api/register', { json });
      const client = api.as(key);
      const id = await newDatabase(client);
      if (id === null) return t.skip(NO_POSTGRESQL);
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
