/** Large uploads in the console: paused, interrupted by a reload, and continued on another day. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import type { Client } from '../harness/client.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf } from './console-kit.ts';

const skip = noBrowser;
const MIB = 2 ** 20;
/** Parts of 16 MiB. */
const BYTES = randomBytes(70 * MIB);
const PARTS = 5;

let fixture: ConsoleFixture;
let folder: string;
before(async () => {
  if (skip) return;
  folder = mkdtempSync(join(tmpdir(), 'part-uploads-'));
  fixture = await ConsoleFixture.open();
});
after(async () => {
  await fixture?.close();
  if (folder !== undefined) rmSync(folder, { recursive: true });
});

const tray = (page: Page) => page.getByRole('region', { name: 'Uploads' });

async function lookingAt(who: string) {
  const page = await fixture.signedUp(who, '/storage');
  const client = await clientOf(fixture, page);
  const bucket = `${who}-films`;
  await client.call('/api/buckets', { json: { name: bucket } });
  await page.goto(`${fixture.cloud.api}/storage/${bucket}`);
  const path = join(folder, `${who}.bin`);
  writeFileSync(path, BYTES);
  return { page, client, bucket, path, name: `${who}.bin` };
}

/** Blocks requests after `parts` parts. */
async function stalledAfter(page: Page, parts: number): Promise<void> {
  let seen = 0;
  await page.route('**/uploads/*/parts/*', (route) => {
    seen++;
    // Neither answered nor refused.
    return seen > parts ? undefined : route.continue();
  });
}

async function partsSent(): Promise<number> {
  const metrics = await (await fetch(`${fixture.cloud.api}/metrics`)).text();
  const lines = metrics.split('\n').filter((line) => line.includes('requests_total{route="uploadPart"'));
  return lines
    .filter((line) => line.includes('status="200"'))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
}

async function arrived(client: Client, bucket: string): Promise<number> {
  const { body } = await client.call(`/api/buckets/${bucket}/uploads`);
  return body[0]?.size ?? 0;
}

async function assertStored(client: Client, bucket: string): Promise<void> {
  const { body } = await client.call(`/api/buckets/${bucket}/files`);
  const content = await client.fetch(`/api/storage/${body[0].id}/download`);
  const hash = createHash('sha256').update(Buffer.from(await content.arrayBuffer()));
  assert.equal(hash.digest('hex'), createHash('sha256').update(BYTES).digest('hex'));
  assert.equal(await arrived(client, bucket), 0);
}

test('an upload is paused and goes on, and cancelled it leaves nothing', { skip }, async () => {
  const { page, client, bucket, path, name } = await lookingAt('pauser');
  await stalledAfter(page, 2);
  await page.locator('input[type=file]').first().setInputFiles(path);
  await eventually('two parts are there', async () => (await arrived(client, bucket)) === 32 * MIB);
  await tray(page)
    .getByRole('button', { name: `Pause ${name}` })
    .click();
  await tray(page)
    .getByText(/^paused at \d+ %$/)
    .waitFor();
  await assertAccessible(page, 'the tray');
  await page.unroute('**/uploads/*/parts/*');
  const before = await partsSent();
  await tray(page)
    .getByRole('button', { name: `Resume ${name}` })
    .click();
  await tray(page).getByText('1 of 1 uploaded', { exact: true }).waitFor();
  assert.equal((await partsSent()) - before, PARTS - 2);
  await assertStored(client, bucket);

  await stalledAfter(page, 1);
  await page.locator('input[type=file]').first().setInputFiles(path);
  await eventually('a part is there', async () => (await arrived(client, bucket)) > 0);
  await tray(page)
    .getByRole('button', { name: `Cancel ${name}` })
    .click();
  await eventually('its parts are gone', async () => (await arrived(client, bucket)) === 0);
  assert.deepEqual(fixture.complaints, []);
  await page.close();
});

test('what a reload cut off goes on with the same file, and with no other', { skip }, async () => {
  const { page, client, bucket, path, name } = await lookingAt('reloader');
  page.on('dialog', (dialog) => dialog.accept());
  await stalledAfter(page, 3);
  await page.locator('input[type=file]').first().setInputFiles(path);
  await eventually('three parts are there', async () => (await arrived(client, bucket)) === 48 * MIB);
  await page.reload();
  await page.unroute('**/uploads/*/parts/*');
  await page.getByText('An upload is not finished.').waitFor();
  await assertAccessible(page, 'an unfinished upload');
  await page.getByRole('link', { name: 'Continue or abort the uploads' }).click();
  const other = join(folder, 'other.bin');
  writeFileSync(other, randomBytes(65 * MIB));
  const choose = async (file: string) => {
    const chooser = page.waitForEvent('filechooser');
    await page.getByRole('button', { name: `Resume ${name}` }).click();
    await (await chooser).setFiles(file);
  };
  await choose(other);
  await tray(page).getByText('This is not the file of the unfinished upload').waitFor();
  assert.equal(await arrived(client, bucket), 48 * MIB, 'nothing of it was touched');
  const before = await partsSent();
  await choose(path);
  await tray(page).getByText('1 of 2 uploaded · 1 failed').waitFor();
  assert.equal((await partsSent()) - before, PARTS - 3);
  await assertStored(client, bucket);
  await page.getByText('No uploads in progress').waitFor();
  await page.close();
});

test('the same file that is dropped again goes on by itself', { skip }, async () => {
  const { page, client, bucket, path } = await lookingAt('returner');
  page.on('dialog', (dialog) => dialog.accept());
  await stalledAfter(page, 1);
  await page.locator('input[type=file]').first().setInputFiles(path);
  await eventually('a part is there', async () => (await arrived(client, bucket)) === 16 * MIB);
  await page.reload();
  await page.unroute('**/uploads/*/parts/*');
  const before = await partsSent();
  await page.locator('input[type=file]').first().setInputFiles(path);
  await tray(page).getByText('1 of 1 uploaded', { exact: true }).waitFor();
  assert.equal((await partsSent()) - before, PARTS - 1);
  await assertStored(client, bucket);
  await page.close();
});
