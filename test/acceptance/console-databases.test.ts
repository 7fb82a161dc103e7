/** Databases in the console: created with one click, queried, forked, deleted and undeleted. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import {
  assertAccessible,
  assertAsks,
  assertOpens,
  openJourney,
  stepsOf,
  type Traveller,
  typeName,
} from './console-journey.ts';
import { run } from './databases-kit.ts';

const skip = noBrowser;
const MARKUP = '<img src=x onerror="window.broken=1">';

const step = stepsOf(skip);
let ada: Traveller;
before(async () => {
  if (!skip) ada = await openJourney('/databases');
});
after(async () => {
  if (!skip) await ada?.fixture.close();
});

const tab = (name: string) => ada.page.getByRole('tab', { name }).click();
const editor = () => ada.page.getByRole('textbox', { name: 'Query' });

/** Runs the text in the editor. */
async function runQuery(statement: string): Promise<void> {
  const { page } = ada;
  await editor().click();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete');
  await page.keyboard.insertText(statement);
  await page.keyboard.press('Control+Enter');
}

const cell = (text: string) => ada.page.getByRole('cell', { name: text, exact: true });

step('a database is made in one click, and says how to connect', async () => {
  const { page, user } = ada;
  await page.getByText('No databases yet').waitFor();
  await assertAccessible(page, 'no databases');
  await page.getByRole('link', { name: 'Create database' }).first().click();
  await page.getByText('SQLite', { exact: true }).waitFor();
  await assertAccessible(page, 'the form of a database');
  await page.getByRole('button', { name: 'Create database' }).click();
  await page.getByText('Connection string').waitFor();
  const [{ database_id: id }] = await user.expect(200, '/api/databases');
  const { connection } = await user.expect(200, `/api/databases/${id}/credentials`);
  assert.doesNotMatch(await page.locator('main').innerText(), new RegExp(connection.password));
  await page.getByRole('button', { name: 'Show password' }).click();
  await page.getByText(connection.uri, { exact: true }).waitFor();
  for (const language of ['Python', 'Go', 'PHP', 'Command line', 'Node.js']) {
    await page.getByText(language, { exact: true }).click();
  }
  await assertAccessible(page, 'how to connect');
});

step('a query writes only when it may, and markup in its result is text', async () => {
  const { page } = ada;
  await tab('Query');
  await runQuery('CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)');
  await page.getByRole('alert').getByText('readonly').waitFor();
  await page.getByRole('switch', { name: 'Read-only' }).uncheck();
  await runQuery('CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT)');
  await page.getByText(/ ms$/).waitFor();
  await runQuery(`INSERT INTO people (name) VALUES ('${MARKUP}'), (NULL)`);
  await page.getByText(/2 changed/).waitFor();
  await runQuery('SELECT * FROM people');
  await cell(MARKUP).waitFor();
  await cell('NULL').waitFor();
  assert.equal(await page.evaluate('window.broken'), undefined);
  await assertAccessible(page, 'a result');
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  const stream = await (await download).createReadStream();
  const csv = Buffer.concat(await Array.fromAsync(stream)).toString();
  assert.equal(csv, `id,name\r\n1,"${MARKUP.replaceAll('"', '""')}"\r\n2,\r\n`);
});

step('its size goes on, and so does its age, while the page is looked at', async () => {
  const { page, user } = ada;
  const [{ database_id: id }] = await user.expect(200, '/api/databases');
  await page.clock.install();
  await page.goto(`${ada.fixture.cloud.api}/databases`);
  await page.getByRole('cell', { name: /^(?:now|\d+ minutes? ago)$/ }).waitFor();
  const path = `/api/databases/${id}`;
  await run(user, path, 'CREATE TABLE big AS SELECT zeroblob(5000000) AS bytes');
  await eventually('it is measured', async () => (await user.expect(200, path)).size_bytes > 5_000_000);
  // So slow that the connection would break, were it not told every 20 s that the cloud is alive.
  await page.clock.fastForward(16_000);
  await page.getByRole('cell', { name: /^[45]\.\d+ MB$/ }).waitFor();
  await run(user, path, 'DROP TABLE big');
  await page.clock.fastForward(3_600_000);
  await cell('1 hour ago').waitFor();
  await page.goto(`${ada.fixture.cloud.api}/databases/${id}?tab=query`);
});

step('table names are completed, and what was run is remembered', async () => {
  const { page } = ada;
  await page.reload();
  await eventually('the last statement is there again', async () =>
    (await editor().innerText()).includes('SELECT * FROM people'),
  );
  await editor().click();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete');
  await page.keyboard.type('select * from peo');
  await page.locator('.cm-tooltip-autocomplete').getByText('people').waitFor();
  await page.keyboard.press('Escape');
  await assertOpens(page, 'History');
  await page.getByRole('button', { name: 'History' }).click();
  await page.getByRole('menuitem', { name: /INSERT INTO people/ }).waitFor();
  await page.keyboard.press('Escape');
});

step('a long query is cancelled', async () => {
  const { page } = ada;
  await runQuery('WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n) SELECT max(i) FROM n');
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText(/^Cancelled/).waitFor();
});

step('tables, charts and what can be done with it are shown', async () => {
  const { page } = ada;
  await tab('Tables');
  await page.getByRole('heading', { name: 'people' }).waitFor();
  await page.getByRole('gridcell', { name: MARKUP, exact: true }).waitFor();
  await assertAccessible(page, 'the rows of a table');
  await page.getByText('Structure', { exact: true }).click();
  await cell('INTEGER').waitFor();
  await assertAccessible(page, 'the tables');
  await tab('Charts');
  await page.getByText('Gaps are times').waitFor();
  await assertAccessible(page, 'the charts');
  await tab('Manage');
  await page.getByRole('button', { name: 'Create fork' }).waitFor();
  await assertAccessible(page, 'what can be done');
  for (const opener of ['Restart server', 'Change password', 'Delete database'])
    await assertAsks(page, opener);
});

step(
  'it is restarted and forked, its password changed, and after its deletion it is brought back',
  async () => {
    const { page, user } = ada;
    const [before] = await user.expect(200, '/api/databases');
    const path = `/api/databases/${before.database_id}`;
    const old = await user.expect(200, `${path}/credentials`);
    await page.getByRole('button', { name: 'Restart server' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restart server' }).click();
    await page.getByText('The server was restarted').waitFor();
    await page.getByRole('button', { name: 'Change password' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Change password' }).click();
    await page.getByText('New connection string').waitFor();
    const { connection } = await user.expect(200, `${path}/credentials`);
    assert.notEqual(connection.password, old.connection.password);
    await page.getByRole('dialog').getByText(connection.uri).waitFor();
    await assertAccessible(page, 'the new password', '[role=dialog]');
    await page.getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Create fork' }).click();
    await page.getByRole('heading', { level: 1, name: `${before.name}-copy` }).waitFor();
    await user.as(ADMIN_KEY).expect(201, '/api/disaster-recovery/points?wait=60', { method: 'POST' });
    await page.goto(`${ada.fixture.cloud.api}/databases/${before.database_id}?tab=manage`);
    await page.getByLabel('Name of the fork').fill('of-a-point');
    await page.getByLabel('Content').selectOption({ index: 1 });
    await assertAccessible(page, 'the choice of a recovery point');
    await page.getByRole('button', { name: 'Create fork' }).click();
    await page.getByRole('heading', { level: 1, name: 'of-a-point' }).waitFor();
    const made = (await user.expect(200, '/api/databases')).at(-1);
    const copied = await run(user, `/api/databases/${made.database_id}`, 'SELECT count(*) FROM people');
    assert.deepEqual(copied.rows, [[2]]);

    await page.goto(`${ada.fixture.cloud.api}/databases/${before.database_id}?tab=manage`);
    const dump = await user.fetch(`${path}/dump`);
    const loaded = page.locator('input[type=file]');
    const buffer = Buffer.from(await dump.arrayBuffer());
    const file = { name: 'kept.db', mimeType: 'application/octet-stream', buffer };
    await loaded.setInputFiles(file);
    const question = page.getByRole('dialog', { name: 'Load kept.db?' });
    await question.getByRole('button', { name: 'Cancel' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Enter');
    await question.waitFor({ state: 'detached' });
    await loaded.setInputFiles(file);
    await typeName(page, before.name);
    await page.getByText('The dump was loaded').waitFor();
    await page.getByRole('button', { name: 'Delete database' }).click();
    await typeName(page, before.name);
    await page.getByText('Recently deleted').waitFor();
    await assertAccessible(page, 'the list of databases');
    await page.getByRole('button', { name: 'Undo' }).click();
    await page.getByRole('link', { name: before.name, exact: true }).waitFor();
    const { rows } = await run(user, path, 'SELECT count(*) FROM people');
    assert.deepEqual(rows, [[2]]);
    assert.deepEqual(ada.fixture.complaints, []);
  },
);

step('each engine that is there is queried; one that is not says why', async () => {
  const { page, user } = ada;
  for (const { engine, available, reason } of await user.expect(200, '/api/database-engines')) {
    if (!available) {
      await page.goto(`${ada.fixture.cloud.api}/databases/new`);
      await page.getByText(reason).waitFor();
      continue;
    }
    const json = { name: `all-${engine}`, engine };
    const { database_id: id } = await user.expect(201, '/api/databases', { json });
    if (engine === 'postgresql') {
      const path = `/api/databases/${id}`;
      await run(user, path, 'CREATE SCHEMA sales');
      await run(user, path, 'CREATE TABLE sales.invoices (number int)');
    }
    await page.goto(`${ada.fixture.cloud.api}/databases/${id}?tab=query`);
    if (engine === 'mongodb') {
      const command = { insert: 'people', documents: [{ name: MARKUP }] };
      await user.expect(200, `/api/databases/${id}/query`, { json: { command, read_only: false } });
      await runQuery('{ "find": "people" }');
      await page.getByRole('cell', { name: MARKUP }).waitFor();
      await editor().click();
      await page.keyboard.press('Control+a');
      await page.keyboard.type('{ "listC');
      await page.locator('.cm-tooltip-autocomplete').getByText('listCollections').waitFor();
    } else {
      await runQuery(`SELECT '${MARKUP}' AS markup;\nSELECT 1 FROM FROM "a;b"; SELECT 2 AS never`);
      await cell(MARKUP).waitFor();
      await page.getByText(/^Line 2, column/).waitFor();
      if (engine === 'postgresql') {
        await page.keyboard.insertText(';');
        await page.keyboard.type('select * from sales.in');
        await page.locator('.cm-tooltip-autocomplete').getByText('invoices').waitFor();
      }
      assert.equal(await page.getByRole('columnheader', { name: 'never' }).count(), 0);
    }
  }
  assert.equal(await page.evaluate('window.broken'), undefined);
});
