/**
 * The diagram of tables in the console: boxes and keys, with the keyboard and as a list, also for 200 tables.
 */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, openJourney, stepsOf, type Traveller } from './console-journey.ts';
import { formOf, newDatabase, sqliteFile } from './databases-kit.ts';

const MANY = 200;
const HOSTILE = '<img src=x onerror="window.broken=1">';

const step = stepsOf(noBrowser);
let ada: Traveller;
let shop: string;
let large: string;
before(async () => {
  if (noBrowser) return;
  ada = await openJourney('/databases');
  shop = await newDatabase(
    ada.user,
    'CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, boss INT REFERENCES people(id))',
    'CREATE TABLE goods (id INTEGER PRIMARY KEY, name TEXT)',
    'CREATE TABLE orders (id INTEGER PRIMARY KEY, person_id INT REFERENCES people(id), at TEXT)',
    'CREATE TABLE lines (order_id INT REFERENCES orders(id), good_id INT REFERENCES goods(id), n INT)',
    `CREATE TABLE "${HOSTILE.replaceAll('"', '""')}" (a INT)`,
  );
  const tables = Array.from({ length: MANY }, (_, at) => {
    const columns = Array.from({ length: 20 }, (__, column) => `c${column} INT`).join(', ');
    const refers = at === 0 ? '' : `, REFERENCES_t INT REFERENCES t${Math.floor(at / 3)}(id)`;
    return `CREATE TABLE t${at} (id INTEGER PRIMARY KEY, ${columns}${refers.replace('REFERENCES_t', 'parent')})`;
  });
  large = await newDatabase(ada.user);
  await ada.user.expect(200, `${large}/load`, { body: formOf(sqliteFile(...tables)) });
});
after(async () => {
  if (!noBrowser) await ada?.fixture.close();
});

/** A folder for screenshots. */
const { PICTURES } = process.env;
const shot = async (name: string) => {
  if (PICTURES !== undefined) await ada.page.screenshot({ path: `${PICTURES}/${name}.png` });
};
const pageOf = (path: string) => `${ada.fixture.cloud.api}${path.replace('/api', '')}?tab=tables`;

step('tables are boxes with their columns, keys are lines, and a key opens a table', async () => {
  const { page } = ada;
  await page.goto(pageOf(shop));
  await page.getByRole('button', { name: 'Diagram' }).press('Enter');
  await page.getByText('5 tables, 4 foreign keys').waitFor();
  const box = page.locator('section svg').getByRole('button', { name: /^lines/ });
  await box.getByText('→ order_id').waitFor();
  assert.equal(await page.locator('section svg path').count(), 4);
  await box.focus();
  assert.equal(await page.locator('section svg path[data-active]').count(), 2);
  assert.equal(await page.evaluate('window.broken'), undefined);
  await assertAccessible(page, 'the diagram');
  await shot('schema-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await shot('schema-light');
  await box.press('Enter');
  await page.getByRole('heading', { name: 'lines', exact: true }).waitFor();
  await page.goBack();
  assert.deepEqual(ada.fixture.complaints, []);
});

step('the list has the same', async () => {
  const { page } = ada;
  await page.goto(`${pageOf(shop)}&view=diagram`);
  await page.getByRole('button', { name: 'As a list' }).press('Enter');
  await page.getByText('person_id → people (id)').waitFor();
  await page.getByText('primary key: id').first().waitFor();
  await assertAccessible(page, 'the list of keys');
  await page
    .getByRole('list', { name: 'Tables with their keys' })
    .getByRole('button', { name: 'goods' })
    .press('Enter');
  await page.getByRole('heading', { name: 'goods', exact: true }).waitFor();
});

step('200 tables are drawn without a long pause, and only those in sight', async () => {
  const { page } = ada;
  await page.goto(`${pageOf(large)}&view=diagram`);
  await page.getByText(`${MANY} tables, ${MANY - 1} foreign keys`).waitFor();
  const boxes = page.locator('section svg g[role=button]');
  await boxes.first().waitFor();
  const drawn = await boxes.count();
  assert.ok(drawn > 5 && drawn < MANY / 2, `${drawn} boxes are drawn`);
  // The last table of the last level, in the order of their names.
  const far = boxes.filter({ hasText: /^t8\d\D/ });
  assert.equal(await far.count(), 0);
  const frame = page.getByRole('region', { name: 'Tables and their keys' });
  await frame.evaluate((element) => element.scrollTo(element.scrollWidth, 0));
  await far.first().waitFor();
  await page.setViewportSize({ width: 390, height: 800 });
  await shot('schema-phone');
  const isWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
  assert.equal(await page.evaluate(isWide), false);
});
