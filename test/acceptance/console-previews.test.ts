/** Files viewed in the console: tables, and the differences between two versions. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { zstdCompressSync } from 'node:zlib';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf } from './console-kit.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open();
});
after(() => fixture?.close());

async function lookingAt(who: string, files: readonly (readonly [string, string | Uint8Array])[]) {
  const page = await fixture.signedUp(who, '/storage');
  const client = await clientOf(fixture, page);
  await client.call('/api/buckets', { json: { name: `${who}-work`, versioning: true } });
  for (const [name, content] of files) await client.upload(`${who}-work`, name, content);
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await page.setViewportSize({ width: 1400, height: 900 });
  await page.goto(`${fixture.cloud.api}/storage/${who}-work`);
  return page;
}

test('a CSV file is a table with types that is sorted, however long, and its markup is text', {
  skip,
}, async () => {
  const lines = Array.from({ length: 40_000 }, (_, i) => `${(i * 7919) % 40_000};name ${i};2026-01-01`);
  const hostile = '"<img src=x onerror=document.title=`ran`>"';
  const page = await lookingAt('analyst', [
    ['long.csv', `number;name;day\n${lines.join('\n')}`],
    ['small.csv', `word,n\n${hostile},10\nb,9\n`],
  ]);
  await page.getByRole('link', { name: 'small.csv' }).click();
  const table = page.getByRole('dialog').getByRole('table');
  await table.getByText('<img src=x').waitFor();
  await page.getByRole('dialog').getByText('2 rows').waitFor();
  await assertAccessible(page, 'a table');
  const column = () => table.locator('tbody tr td:last-child').allTextContents();
  assert.deepEqual(await column(), ['10', '9']);
  await table.getByRole('button', { name: 'n number' }).click();
  assert.deepEqual(await column(), ['9', '10']);
  await page.getByRole('link', { name: 'long.csv' }).click();
  await page.getByText('The first 1,000 rows.').waitFor();
  await table.getByRole('columnheader', { name: 'number number' }).waitFor();
  await table.getByRole('columnheader', { name: 'day date' }).waitFor();
  assert.doesNotMatch(await page.title(), /ran/);
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});

test('an earlier version of a text is compared with the current one', { skip }, async () => {
  const page = await lookingAt('editor', [
    ['a.txt', 'one\ntwo\nthree'],
    ['a.txt', 'one\n<b>2</b>\nthree\nfour'],
  ]);
  await page.getByRole('link', { name: 'a.txt' }).click();
  await page.getByRole('tab', { name: 'Versions (2)' }).click();
  await page.getByRole('button', { name: 'Compare with current' }).click();
  const changes = page.getByRole('dialog', { name: 'Changes of a.txt' });
  await changes.locator('del').getByText('− two').waitFor();
  assert.deepEqual(await changes.locator('ins').allTextContents(), ['+ <b>2</b>', '+ four']);
  await assertAccessible(page, 'a comparison', '[aria-modal=true]');
  await page.keyboard.press('Escape');
  await changes.waitFor({ state: 'detached' });
  await page.getByRole('dialog', { name: 'a.txt' }).waitFor();
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});

const compressors = { ZSTD: (bytes: Uint8Array) => new Uint8Array(zstdCompressSync(bytes)) };
const parquet = (options: Parameters<typeof parquetWriteBuffer>[0]) =>
  new Uint8Array(parquetWriteBuffer({ compressors, ...options }));

test('a Parquet file is its columns and first rows, read by ranges, and its markup is text', {
  skip,
}, async () => {
  const hostile = '<img src=x onerror=document.title=`ran`>';
  const long = Array.from({ length: 300_000 }, (_, at) => `row ${at} ${Math.sin(at)}`);
  const page = await lookingAt('miner', [
    [
      'small.parquet',
      parquet({
        columnData: [
          { name: 'n', data: [1, 2], type: 'INT32' },
          { name: hostile, data: [hostile, 'b'], type: 'STRING' },
        ],
        codec: 'ZSTD',
      }),
    ],
    ['long.parquet', parquet({ columnData: [{ name: 'word', data: long }], rowGroupSize: 1000 })],
  ]);
  let readBytes = 0;
  page.on('response', async (response) => {
    if (!response.url().includes('/download?')) return;
    if (response.status() !== 206) fixture.complaints.push(`${response.status()}`);
    readBytes += Number(response.headers()['content-length']);
  });
  await page.getByRole('link', { name: 'small.parquet' }).click();
  const details = page.getByRole('complementary').or(page.getByRole('dialog'));
  const table = details.getByRole('table');
  await table.getByRole('columnheader', { name: 'n int32' }).waitFor();
  await table.getByRole('columnheader', { name: '<img src=x' }).waitFor();
  await table.getByRole('cell', { name: '<img src=x' }).waitFor();
  await details.getByText('2 rows, 2 columns.').waitFor();
  await assertAccessible(page, 'a Parquet file');
  await page.getByRole('link', { name: 'long.parquet' }).click();
  await details.getByText('The first 200 of 300,000 rows, 1 column.').waitFor();
  await table.getByRole('cell', { name: 'row 0 0' }).waitFor();
  assert.ok(readBytes > 0 && readBytes < 1_500_000, `${readBytes} bytes were read`);
  assert.doesNotMatch(await page.title(), /ran/);
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});

test('a hostile Parquet file ends in a reason, and the page answers meanwhile', { skip }, async () => {
  const good = parquet({ columnData: [{ name: 'id', data: [1, 2, 3], type: 'INT32' }], codec: 'SNAPPY' });
  const changed = (at: number, ...bytes: number[]) => {
    const copy = good.slice();
    copy.set(bytes, at);
    return copy;
  };
  const columnData = Array.from({ length: 10_000 }, (_, at) => ({ name: `c${at}`, data: [at] }));
  const zeros = [new Uint8Array(200 * 2 ** 20)];
  const page = await lookingAt('prey', [
    ['none.parquet', 'PAR1 is not at the end'],
    ['length.parquet', changed(good.length - 8, 0xff, 0xff, 0xff, 0xff)],
    ['wide.parquet', parquet({ columnData })],
    [
      'bomb.parquet',
      parquet({
        columnData: [{ name: 'zeros', data: zeros, type: 'BYTE_ARRAY' }],
        codec: 'ZSTD',
        statistics: false,
      }),
    ],
    // The size of its page points back to the page itself: a reader would loop forever.
    ['endless.parquet', changed(11, 0x80)],
  ]);
  const details = page.getByRole('complementary').or(page.getByRole('dialog'));
  for (const [name, words] of [
    ['none', 'This is not a Parquet file'],
    ['length', 'This Parquet file is damaged'],
    ['wide', '1 row, 100 of 10,000 columns.'],
    ['bomb', 'The first rows are too large for a preview'],
    ['endless', 'Reading this file takes too long'],
  ] as const) {
    await page.getByRole('link', { name: `${name}.parquet` }).click();
    if (name === 'endless') {
      await details.getByText('Reading the columns').waitFor();
      await details.getByRole('tab', { name: 'Versions (1)' }).click();
    }
    await details.getByText(words).waitFor();
  }
  await assertAccessible(page, 'a Parquet file that is none');
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});
