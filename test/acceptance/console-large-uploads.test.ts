/** Uploads in the console of very many files, and of a very large one: each file is accounted for. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statfsSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { ConsoleFixture, clientOf, dropFiles } from './console-kit.ts';

const FILES = 10_000;
/** As sent by the console. */
const SENT_AT_ONCE = 3;
const GIB = 2 ** 30;
const { bavail, bsize } = statfsSync(tmpdir());
const isDiskTooSmall =
  bavail * bsize < 5 * GIB && 'needs 5 GiB of disk for the upload and what is cancelled of it';

let fixture: ConsoleFixture;
let folder: string;
before(async () => {
  if (noBrowser) return;
  folder = mkdtempSync(join(tmpdir(), 'large-uploads-'));
  fixture = await ConsoleFixture.open();
});
after(async () => {
  await fixture?.close();
  if (folder !== undefined) rmSync(folder, { recursive: true });
});

const tray = (page: Page) => page.getByRole('region', { name: 'Uploads' });

/** The numbers of uploaded and cancelled files in the tray. */
async function countsOf(page: Page): Promise<{ done: number; cancelled: number }> {
  const said = await tray(page).getByRole('status').innerText();
  const counts = /^([\d,]+) of 10,000 uploaded(?: · ([\d,]+) cancelled)?/.exec(said);
  const [done = 0, cancelled = 0] = (counts ?? [])
    .slice(1)
    .map((count = '0') => Number(count.replace(',', '')));
  return { done, cancelled };
}

/** Uploaded files, once no file waits. */
function uploadedOf(page: Page): Promise<number> {
  return eventually('the tray says what became of each file', async () => {
    const { done, cancelled } = await countsOf(page);
    return done + cancelled === FILES ? done : undefined;
  });
}

test('10,000 files at once: the page answers, and each is stored or said to be cancelled', {
  skip: noBrowser,
}, async () => {
  const page = await fixture.signedUp('mover', '/storage');
  const client = await clientOf(fixture, page);
  const names = Array.from({ length: FILES }, (_, i) => `move/file-${i}`);
  await dropFiles(page, Object.fromEntries(names.map((name) => [name, name])));
  await tray(page)
    .getByText(/^[1-9][\d,]* of 10,000 uploaded/)
    .waitFor();
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByText('First five minutes').waitFor();
  await tray(page).getByRole('region', { name: 'Files' }).press('End');
  await tray(page).getByText('move/file-9999', { exact: true }).waitFor();
  await tray(page).getByRole('button', { name: 'Cancel all' }).click();
  const done = await uploadedOf(page);
  const stored: { name: string }[] = (await client.call('/api/buckets/uploads/files')).body;
  assert.ok(done <= stored.length && stored.length <= done + SENT_AT_ONCE, `${stored.length} of ${done}`);
  await tray(page).getByRole('button', { name: 'Retry', exact: true }).click();
  await eventually('more are uploaded', async () => (await countsOf(page)).done > done);
  await tray(page).getByRole('button', { name: 'Cancel all' }).click();
  assert.ok((await uploadedOf(page)) > done);
  await page.close();
});

test('an upload of 2 GiB that is cancelled in the middle stores nothing, and all of it when sent again', {
  skip: noBrowser || isDiskTooSmall,
}, async () => {
  const path = join(folder, 'huge.bin');
  writeFileSync(path, '');
  truncateSync(path, 2 * GIB);
  const page = await fixture.signedUp('archivist', '/storage');
  const client = await clientOf(fixture, page);
  await client.call('/api/buckets', { json: { name: 'archive' } });
  await page.goto(`${fixture.cloud.api}/storage/archive`);
  const input = page.locator('input[type=file]').first();
  await input.setInputFiles(path);
  assert.equal(await input.inputValue(), '', 'the same file can be chosen again');
  await eventually('a part is sent', () =>
    tray(page)
      .getByText(/^[1-9]\d? %$/)
      .isVisible(),
  );
  await tray(page).getByRole('button', { name: 'Cancel huge.bin' }).click();
  await tray(page).getByText('0 of 1 uploaded · 1 cancelled').waitFor();
  assert.deepEqual((await client.call('/api/buckets/archive/files')).body, []);
  await tray(page).getByRole('button', { name: 'Retry huge.bin' }).click();
  await tray(page).getByText('1 of 1 uploaded', { exact: true }).waitFor({ timeout: 240_000 });
  const { body } = await client.call('/api/buckets/archive/files');
  assert.deepEqual(
    body.map(({ name, size }: { name: string; size: number }) => [name, size]),
    [['huge.bin', 2 * GIB]],
  );
  await page.close();
});
