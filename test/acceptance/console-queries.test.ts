/** The query page of the console, with real keys: many rows, plans, stored queries. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, openJourney, stepsOf, type Traveller } from './console-journey.ts';
import { newDatabase } from './databases-kit.ts';

const MARKUP = '<img src=x onerror="window.broken=1">';

const step = stepsOf(noBrowser);
let ada: Traveller;
let path: string;
before(async () => {
  if (noBrowser) return;
  ada = await openJourney('/databases');
  path = await newDatabase(
    ada.user,
    'CREATE TABLE many (id INTEGER PRIMARY KEY, word TEXT, other INTEGER)',
    `INSERT INTO many WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2500)
      SELECT i, 'word ' || i, i % 10 FROM n`,
    `CREATE TABLE "aim ${MARKUP.replaceAll('"', '""')}" (id INTEGER PRIMARY KEY)`,
  );
});
after(async () => {
  if (!noBrowser) await ada?.fixture.close();
});

/** A folder for screenshots. */
const { PICTURES } = process.env;
const shot = async (name: string) => {
  if (PICTURES !== undefined) await ada.page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });
};
const editor = () => ada.page.getByRole('textbox', { name: 'Query', exact: true });
const button = (name: string) => ada.page.getByRole('button', { name, exact: true });
const cell = (text: string) => ada.page.getByRole('cell', { name: text, exact: true });
async function type(statement: string): Promise<void> {
  await editor().click();
  await ada.page.keyboard.press('Control+a');
  await ada.page.keyboard.insertText(statement);
}

step('a result of more than 1,000 rows is read page by page', async () => {
  const { page } = ada;
  await page.goto(`${ada.fixture.cloud.api}${path.replace('/api', '')}?tab=query`);
  await button('History').press('Enter');
  const note = page.getByRole('menuitem', { name: /^Queries that you run/ });
  await note.waitFor();
  await page.keyboard.press('Escape');
  await note.waitFor({ state: 'detached' });
  await type('SELECT word FROM many ORDER BY id');
  await page.keyboard.press('Control+Enter');
  await page.getByText('Rows 1 to 1,000').waitFor();
  await button('Next page').click();
  await page.getByText('Rows 1,001 to 2,000').waitFor();
  await cell('word 1001').waitFor();
  await button('Next page').click();
  await page.getByText('Rows 2,001 to 2,500').waitFor();
  await eventually('there is no page after the last', () => button('Next page').isDisabled());
  await assertAccessible(page, 'a page of a result');
  await shot('query-pages-dark');
  await button('Previous page').click();
  await page.getByText('Rows 1,001 to 2,000').waitFor();
  assert.ok((await page.getByRole('row').count()) < 100);
});

step('a statement is explained as a tree, and its names are text', async () => {
  const { page } = ada;
  const name = `aim ${MARKUP.replaceAll('"', '""')}`;
  await type(`SELECT a.word FROM many AS a JOIN "${name}" AS b ON b.id = a.other ORDER BY a.word`);
  await button('Explain').click();
  const plan = page.getByRole('region', { name: 'Plan' });
  await plan.getByText('USE TEMP B-TREE FOR ORDER BY').waitFor();
  await plan.getByRole('listitem').filter({ hasText: 'SCAN a' }).waitFor();
  assert.equal(await page.evaluate('window.broken'), undefined);
  await assertAccessible(page, 'a plan');
  await shot('query-plan-dark');
  await type('SELECT * FROM nowhere');
  await button('Explain').click();
  await page.getByText(/no such table: nowhere/).waitFor();
});

step('a query is saved under a name, opened again after a reload, and deleted after a question', async () => {
  const { page, user } = ada;
  await type(`SELECT '${MARKUP.replaceAll("'", "''")}' AS kept`);
  await button('Saved').click();
  await page.getByRole('menuitem', { name: 'Save query…' }).click();
  await page.getByLabel('Name').fill(MARKUP);
  await page.keyboard.press('Enter');
  await page.getByText(`${MARKUP} was saved`).waitFor();
  await page.reload();
  await type('SELECT 1');
  await button('Saved').click();
  await page.getByRole('menuitem', { name: /AS kept/ }).waitFor();
  await assertAccessible(page, 'saved queries');
  await shot('query-saved-dark');
  await page.getByRole('menuitem', { name: /AS kept/ }).click();
  await eventually('it is in the editor', async () => (await editor().innerText()).includes('AS kept'));
  assert.equal(await page.evaluate('window.broken'), undefined);
  await button('Saved').click();
  await page.getByRole('menuitem', { name: `Delete the saved query ${MARKUP}` }).click();
  await button('Delete').click();
  await eventually('it is gone', async () => (await user.expect(200, `${path}/saved-queries`)).length === 0);
});

step(
  'several queries are open at once, named, kept in this browser, and closed after a question',
  async () => {
    const { page } = ada;
    const tab = (name: string) => page.getByRole('tab', { name, exact: true });
    const shows = (text: string) => eventually(text, async () => (await editor().innerText()).includes(text));
    await type("SELECT 'one'");
    await button('New query').click();
    await tab('Query 2').waitFor();
    await type(`SELECT '${MARKUP}'`);
    await tab('Query 2').press('F2');
    await page.getByLabel('Name of the tab').fill(MARKUP);
    await page.keyboard.press('Enter');
    await tab(MARKUP).waitFor();
    await tab('Query 1').click();
    await shows("SELECT 'one'");
    await page.reload();
    await shows("SELECT 'one'");
    await tab(MARKUP).focus();
    await page.keyboard.press('Enter');
    await shows(MARKUP);
    await assertAccessible(page, 'tabs of queries');
    await shot('query-tabs-dark');
    await button(`Close ${MARKUP}`).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await tab(MARKUP).waitFor();
    await button(`Close ${MARKUP}`).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Close', exact: true }).last().click();
    await tab(MARKUP).waitFor({ state: 'detached' });
    await shows("SELECT 'one'");
    assert.equal(await page.evaluate('window.broken'), undefined);
  },
);
