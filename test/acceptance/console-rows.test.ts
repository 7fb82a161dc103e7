/** Rows of a table in the console: many rows and columns, hostile ones, filtered and sorted. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, openJourney, stepsOf, type Traveller } from './console-journey.ts';
import { newDatabase, rowsOf, run } from './databases-kit.ts';

const MARKUP = '<img src=x onerror="window.broken=1">';
const ROWS = 50_000;
const COLUMNS = 200;

const step = stepsOf(noBrowser);
let ada: Traveller;
let path: string;
before(async () => {
  if (noBrowser) return;
  ada = await openJourney('/databases');
  path = await newDatabase(
    ada.user,
    'CREATE TABLE "aim <b>" (id INTEGER PRIMARY KEY, "na""me" TEXT, bytes BLOB, big)',
  );
  await run(
    ada.user,
    path,
    `INSERT INTO "aim <b>" VALUES (1, '${MARKUP}', x'0001ff', 9007199254740993), (2, '', NULL, 1.5)`,
  );
  await run(ada.user, path, 'CREATE TABLE many (id INTEGER PRIMARY KEY, word TEXT)');
  const numbers = `WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ${ROWS})`;
  await run(
    ada.user,
    path,
    `${numbers} INSERT INTO many SELECT i, 'word ' || i FROM n`.replace(
      /^(WITH.*?\)) (INSERT INTO many) /,
      '$2 $1 ',
    ),
  );
  const columns = Array.from({ length: COLUMNS }, (_, i) => `c${i} INT DEFAULT ${i}`);
  await run(ada.user, path, `CREATE TABLE wide (id INTEGER PRIMARY KEY, ${columns.join(', ')})`);
  for (let i = 0; i < 5; i++) await run(ada.user, path, 'INSERT INTO wide DEFAULT VALUES');
});
after(async () => {
  if (!noBrowser) await ada?.fixture.close();
});

const grid = () => ada.page.getByRole('grid');
/** A folder for screenshots. */
const { PICTURES } = process.env;
const shot = async (name: string) => {
  if (PICTURES !== undefined) await ada.page.screenshot({ path: `${PICTURES}/${name}.png` });
};
const cell = (text: string) => grid().getByRole('gridcell', { name: text, exact: true });
const focused = (text: string) => cell(text).and(ada.page.locator(':focus'));
const open = (table: string) => ada.page.getByRole('button', { name: table, exact: true }).click();

step(
  'hostile names and values are text; NULL, empty text, bytes and large numbers are told apart',
  async () => {
    const { page } = ada;
    await page.goto(`${ada.fixture.cloud.api}${path.replace('/api', '')}?tab=tables`);
    await page.getByRole('heading', { name: 'aim <b>' }).waitFor();
    await cell(MARKUP).waitFor();
    for (const text of ['0001ff', '9007199254740993', 'empty text', 'NULL', '1.5'])
      await cell(text).waitFor();
    await page.getByText('2 rows', { exact: true }).waitFor();
    assert.equal(await page.evaluate('window.broken'), undefined);
    await assertAccessible(page, 'rows of a table');
    await shot('rows-dark');
  },
);

step('50,000 rows are scrolled to their end, and few of them are in the page', async () => {
  const { page } = ada;
  await open('many');
  await page.getByText('50,000 rows', { exact: true }).waitFor();
  await cell('word 1').click();
  await focused('word 1').waitFor();
  await page.keyboard.press('Control+End');
  await focused(`word ${ROWS}`).waitFor();
  assert.ok((await grid().getByRole('row').count()) < 100);
  await page.keyboard.press('PageUp');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowLeft');
  await page.locator('[role=gridcell]:focus').waitFor();
  await page.keyboard.press('Control+Home');
  await focused('1').waitFor();
});

step('a filter is bound, not written into the statement, and is in the address', async () => {
  const { page } = ada;
  await page.getByLabel('Column').selectOption('word');
  await page.getByLabel('Comparison').selectOption('contains');
  await page.getByLabel('Value').fill("word 4999' OR 1 = 1");
  await page.keyboard.press('Enter');
  await page.getByText('0 rows', { exact: true }).waitFor();
  await page.getByRole('button', { name: /^Remove the filter word contains/ }).click();
  await page.getByText('50,000 rows', { exact: true }).waitFor();
  await page.getByLabel('Value').fill('WORD 4999');
  await page.keyboard.press('Enter');
  await page.getByText('11 rows', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'id INTEGER' }).click();
  await page.getByRole('button', { name: 'id INTEGER' }).click();
  await grid()
    .getByRole('columnheader', { name: 'id INTEGER' })
    .and(page.locator('[aria-sort=descending]'))
    .waitFor();
  assert.equal(await grid().getByRole('gridcell').first().innerText(), '49999');
  await page.emulateMedia({ colorScheme: 'light' });
  await shot('rows-filtered');
  await assertAccessible(page, 'filtered rows');
  await page.reload();
  await page.getByText('11 rows', { exact: true }).waitFor();
  await cell('49999').waitFor();
});

step('200 columns are reached with the keyboard, and few of them are in the page', async () => {
  const { page } = ada;
  await open('wide');
  await page.getByText('5 rows', { exact: true }).waitFor();
  await grid().getByRole('gridcell').first().click();
  await page.keyboard.press('End');
  await focused('199').first().waitFor();
  assert.ok((await grid().getByRole('columnheader').count()) < 40);
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowDown');
  await focused('2').first().waitFor();
  assert.deepEqual(ada.fixture.complaints, []);
});

step(
  'cells are edited, rows added and deleted by keys, shown as SQL, and refused when somebody was faster',
  async () => {
    const { page, user } = ada;
    await open('many');
    await page.getByText('50,000 rows', { exact: true }).waitFor();
    await cell('word 1').click();
    await page.keyboard.press('Enter');
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText(MARKUP);
    await page.keyboard.press('Enter');
    await focused(MARKUP).waitFor();
    await page.keyboard.press('ArrowDown');
    await focused('word 2').waitFor();
    await page.keyboard.press('Delete');
    await page.getByRole('button', { name: 'Add row' }).click();
    await page.getByRole('button', { name: 'Review 3 changes' }).press('Enter');
    const dialog = page.getByRole('dialog');
    await dialog.getByText(/^DELETE FROM "many" WHERE "id" = /).waitFor();
    await dialog.getByText(/^UPDATE "many" SET "word" = /).waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).and(page.locator(':focus')).waitFor();
    await assertAccessible(page, 'the review', '[role=dialog]');
    await shot('rows-review');
    await run(user, path, `UPDATE many SET word = 'faster' WHERE id = 2`);
    await dialog.getByRole('button', { name: 'Run 3 changes' }).press('Enter');
    await dialog.getByText(/the row was changed or deleted meanwhile/).waitFor();
    assert.deepEqual(await rowsOf(user, path, 'SELECT word FROM many WHERE id < 3 ORDER BY id'), [
      ['word 1'],
      ['faster'],
    ]);
    await page.keyboard.press('Escape');
    await run(user, path, `UPDATE many SET word = 'word 2' WHERE id = 2`);
    await shot('rows-edited');
    await assertAccessible(page, 'changed rows');
    await page.getByRole('button', { name: 'Review 3 changes' }).press('Enter');
    await dialog.getByText(/^DELETE FROM "many" WHERE "id" = /).waitFor();
    await dialog.getByRole('button', { name: 'Run 3 changes' }).press('Enter');
    await page.getByText('3 rows changed').waitFor();
    assert.deepEqual(
      await rowsOf(user, path, 'SELECT id, word FROM many WHERE id < 3 OR id > 50000 ORDER BY id'),
      [
        [1, MARKUP],
        [50_001, null],
      ],
    );
    assert.equal(await page.evaluate('window.broken'), undefined);
  },
);

step('cells of a computed column are not opened, and take no NULL', async () => {
  const { page, user } = ada;
  await run(user, path, 'CREATE TABLE sums (id INTEGER PRIMARY KEY, n INT, twice INT AS (n * 2) STORED)');
  await run(user, path, 'INSERT INTO sums(id, n) VALUES (1, 21)');
  await page.getByRole('button', { name: 'Refresh' }).click();
  await open('sums');
  await page.getByText('1 row', { exact: true }).waitFor();
  await cell('42').dblclick();
  await page.getByText('The database computes this column').waitFor();
  await page.keyboard.press('Enter');
  assert.equal(await grid().locator('input').count(), 0);
  assert.ok(await page.getByRole('button', { name: 'Set NULL' }).isDisabled());
  await cell('21').dblclick();
  await grid().locator('input').waitFor();
  await page.keyboard.press('Escape');
});

step('on a phone, the grid scrolls in its own place', async () => {
  const { page } = ada;
  await page.setViewportSize({ width: 390, height: 800 });
  await assertAccessible(page, 'rows on a phone');
  await shot('rows-phone');
  const isWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
  assert.equal(await page.evaluate(isWide), false);
});

step('changes that did not run are lost only after a question', async () => {
  const { page } = ada;
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.goto(`${ada.fixture.cloud.api}${path.replace('/api', '')}?tab=tables&table=wide`);
  await page.getByText('5 rows', { exact: true }).waitFor();
  await grid().getByRole('gridcell').nth(1).click();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText('77');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Review 1 change' }).waitFor();
  const question = page.getByRole('dialog', { name: 'Discard 1 change?' });
  for (const leave of [
    () => open('many'),
    () => page.getByRole('tab', { name: 'Query', exact: true }).click(),
    () => page.getByRole('link', { name: 'Storage', exact: true }).click(),
  ]) {
    await leave();
    await question.waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).and(page.locator(':focus')).waitFor();
    // Enter pressed immediately keeps them.
    await page.keyboard.press('Enter');
    await question.waitFor({ state: 'hidden' });
    await cell('77').waitFor();
  }
  // Sorting keeps them without a confirmation.
  await page.getByRole('button', { name: 'id INTEGER' }).click();
  await grid().locator('[aria-sort=ascending]').waitFor();
  await cell('77').waitFor();
  // The browser also asks, if the page would be reloaded.
  const asked = page.waitForEvent('dialog');
  await page.evaluate('setTimeout(() => location.reload())');
  const dialog = await asked;
  assert.equal(dialog.type(), 'beforeunload');
  await dialog.dismiss();
  await cell('77').waitFor();
  await open('many');
  await question.waitFor();
  await assertAccessible(page, 'a question before changes are lost');
  await shot('rows-leave');
  await page.getByRole('button', { name: 'Discard and leave' }).click();
  await page.getByText('50,000 rows', { exact: true }).waitFor();
  await open('wide');
  await page.getByText('5 rows', { exact: true }).waitFor();
});
