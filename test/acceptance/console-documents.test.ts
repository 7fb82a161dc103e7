/** Documents of MongoDB in the console: read as trees, filtered, changed, all by real input. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { BSON, type Db, Long, MongoClient, ObjectId } from 'mongodb';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, openJourney, stepsOf, type Traveller } from './console-journey.ts';
import { DATABASES } from './databases-kit.ts';

const MARKUP = '<img src=x onerror="window.broken=1">';
const MANY = 120;

const step = stepsOf(noBrowser);
let ada: Traveller;
let path: string;
let client: MongoClient;
let db: Db;
before(async () => {
  if (noBrowser) return;
  ada = await openJourney('/databases');
  const made = await ada.user.expect(201, DATABASES, { json: { name: 'papers', engine: 'mongodb' } });
  path = `${DATABASES}/${made.database_id}`;
  client = await new MongoClient(String(made.connection.uri)).connect();
  db = client.db();
  const keys = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`key ${i}`, i]));
  await db.command({
    insert: 'aim <b>',
    documents: [
      {
        _id: 'typed',
        name: MARKUP,
        big: Long.fromString('9007199254740993'),
        inner: { list: [1, { [MARKUP]: 2 }] },
      },
      { _id: 'wide', ...keys },
      { _id: 'zz large', body: 'x'.repeat(15 * 2 ** 20) },
    ],
  });
  const many = Array.from({ length: MANY }, (_, n) => ({ _id: n, n, odd: n % 2 === 1 }));
  await db.collection<{ _id: number }>('many').insertMany(many);
});
after(async () => {
  await client?.close();
  if (!noBrowser) await ada?.fixture.close();
});

/** A folder for screenshots. */
const { PICTURES } = process.env;
const shot = async (name: string) => {
  if (PICTURES !== undefined) await ada.page.screenshot({ path: `${PICTURES}/${name}.png` });
};
const open = (table: string) => ada.page.getByRole('button', { name: table, exact: true }).click();
const opener = (id: string) =>
  ada.page.getByRole('listitem').getByRole('button', { expanded: false }).filter({ hasText: id });
const stored = (collection: string) =>
  db.collection(collection).find({}, { promoteValues: false }).sort({ _id: 1 }).toArray();

step('documents are trees: hostile names are text, and 200 keys and 15 MB are shown in part', async () => {
  const { page } = ada;
  await page.goto(`${ada.fixture.cloud.api}${path.replace('/api', '')}?tab=tables`);
  await page.getByRole('heading', { name: 'aim <b>' }).waitFor();
  await page.getByText('3 documents', { exact: true }).waitFor();
  await opener('typed').focus();
  await page.keyboard.press('Enter');
  await page.getByText('9007199254740993', { exact: true }).waitFor();
  await page.getByText('Int64', { exact: true }).waitFor();
  await page.locator('summary', { hasText: 'inner' }).focus();
  await page.keyboard.press('Enter');
  await page.locator('summary', { hasText: 'list' }).press('Enter');
  await page.locator('summary', { hasText: /^1 Object/ }).press('Enter');
  await page.locator('b', { hasText: MARKUP }).waitFor();
  assert.equal(await page.evaluate('window.broken'), undefined);
  await opener('wide').click();
  await page.getByText('key 98', { exact: true }).waitFor();
  await page.getByRole('button', { name: '101 more' }).click();
  await page.getByText('key 199', { exact: true }).waitFor();
  await opener('zz large').click();
  await page.getByText(/^This document has 15/).waitFor();
  assert.equal(await page.getByRole('button', { name: 'Edit zz large' }).count(), 0);
  await assertAccessible(page, 'documents');
  await page.evaluate('scrollTo(0, 0)');
  await shot('documents-dark');
  await page.emulateMedia({ colorScheme: 'light' });
  await shot('documents-light');
});

step('a filter of MongoDB and an order are in the address, and pages follow one another', async () => {
  const { page } = ada;
  await open('many');
  await page.getByText(`${MANY} documents`, { exact: true }).waitFor();
  const items = page.getByRole('list', { name: 'Documents of many' }).getByRole('listitem');
  await page.getByRole('button', { name: 'More documents' }).click();
  await page.getByRole('button', { name: 'More documents' }).click();
  await opener('119').waitFor();
  assert.equal(await items.count(), MANY);
  assert.equal(await page.getByRole('button', { name: 'More documents' }).count(), 0);
  await page.getByRole('textbox', { name: 'MongoDB filter' }).fill('{"odd": ');
  await page.keyboard.press('Enter');
  await page.getByText(/JSON/).first().waitFor();
  await page.getByRole('textbox', { name: 'MongoDB filter' }).fill('{"odd": true}');
  await page.getByRole('textbox', { name: 'Sort by' }).fill('n');
  await page.getByRole('combobox', { name: 'Direction' }).selectOption('down');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Apply' }).click();
  await page.getByText(`${MANY / 2} documents`, { exact: true }).waitFor();
  assert.match(await items.first().innerText(), /119/);
  await page.getByRole('button', { name: 'More documents' }).click();
  await opener('1').last().waitFor();
  await page.reload();
  await page.getByText(`${MANY / 2} documents`, { exact: true }).waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'MongoDB filter' }).inputValue(), '{"odd": true}');
  await assertAccessible(page, 'filtered documents');
});

step('documents are edited, added and deleted by keys, and shown as commands before they run', async () => {
  const { page } = ada;
  await open('aim <b>');
  await page.getByText('3 documents', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Edit typed' }).press('Enter');
  const editor = page.getByRole('dialog').getByRole('textbox', { name: 'Extended JSON' });
  await editor.and(page.locator(':focus')).waitFor();
  await assertAccessible(page, 'the editor', '[role=dialog]');
  await shot('documents-editor');
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText('{"_id": "typed", ');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('dialog').getByText(/JSON/).last().waitFor();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(
    '{"_id":"typed","big":{"$numberLong":"9007199254740993"},"d":1.0,"id":{"$oid":"507f1f77bcf86cd799439011"}}',
  );
  await page.keyboard.press('Control+Enter');
  await page.getByText('changed', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Delete wide' }).press('Enter');
  await page.getByRole('button', { name: 'Add document' }).press('Enter');
  await editor.and(page.locator(':focus')).waitFor();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText('{"_id": "new", "n": 1}');
  await page.keyboard.press('Control+Enter');
  await page.getByRole('button', { name: 'Review 3 changes' }).press('Enter');
  const dialog = page.getByRole('dialog');
  await dialog.getByText(/"delete":"aim <b>"/).waitFor();
  await dialog.getByText(/"update":"aim <b>"/).waitFor();
  await shot('documents-review');
  await db.collection<{ _id: string }>('aim <b>').updateOne({ _id: 'wide' }, { $set: { seen: 1 } });
  await dialog.getByRole('button', { name: 'Run 3 changes' }).press('Enter');
  await dialog.getByText(/the row was changed or deleted meanwhile/).waitFor();
  assert.deepEqual(
    (await stored('aim <b>')).map(({ _id }) => String(_id)),
    ['typed', 'wide', 'zz large'],
  );
  await page.keyboard.press('Escape');
  await db.collection<{ _id: string }>('aim <b>').updateOne({ _id: 'wide' }, { $unset: { seen: '' } });
  await shot('documents-changed');
  await page.getByRole('button', { name: 'Review 3 changes' }).press('Enter');
  await dialog.getByText(/"update":"aim <b>"/).waitFor();
  await dialog.getByRole('button', { name: 'Run 3 changes' }).press('Enter');
  await page.getByText('3 rows changed').waitFor();
  const [added, typed] = await stored('aim <b>');
  assert.equal(added?._id, 'new');
  assert.equal(
    BSON.EJSON.stringify(typed, { relaxed: false }),
    BSON.EJSON.stringify(
      {
        _id: 'typed',
        big: Long.fromString('9007199254740993'),
        d: new BSON.Double(1),
        id: new ObjectId('507f1f77bcf86cd799439011'),
      },
      { relaxed: false },
    ),
  );
  assert.deepEqual(
    ada.fixture.complaints.filter((one) => !/409/.test(one)),
    [],
  );
});

step('changes that did not run are lost only after a question', async () => {
  const { page } = ada;
  await page.getByRole('button', { name: 'Delete new' }).press('Enter');
  await page.getByText('to be deleted').waitFor();
  await open('many');
  const question = page.getByRole('dialog', { name: 'Discard 1 change?' });
  await question.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: 'Discard changes' }).click();
  await open('many');
  await page.getByText(`${MANY} documents`, { exact: true }).waitFor();
});

step('on a phone nothing is wider than the page', async () => {
  const { page } = ada;
  await open('aim <b>');
  await page.getByText('3 documents', { exact: true }).waitFor();
  await page.setViewportSize({ width: 390, height: 800 });
  await opener('typed').click();
  await assertAccessible(page, 'documents on a phone');
  await shot('documents-phone');
  const isWide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
  assert.equal(await page.evaluate(isWide), false);
});
