/**
 * Makes the pictures of the console that README shows: its own cloud, filled by this script, and seen
 * with Debian's Chromium. Run it by hand when the console looks different: `npm run pictures`.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { ConsoleFixture } from '../test/acceptance/console-kit.ts';
import { CheckedClient } from '../test/harness/checked-client.ts';
import { eventually } from '../test/harness/waiting.ts';

const TARGET = join(import.meta.dirname, '../docs/pictures');
const VIEW = { width: 1120, height: 660 };
const FILES = ['holiday/beach.jpg', 'holiday/mountain.jpg', 'invoices/march.pdf', 'notes.md', 'team.png'];
const STATEMENTS = [
  'CREATE TABLE product (id INTEGER PRIMARY KEY, name TEXT, price REAL)',
  "INSERT INTO product (name, price) VALUES ('Kettle', 29.9), ('Teapot', 24.5), ('Cup', 6), ('Strainer', 9.9)",
];
const QUERY = 'SELECT name, price FROM product ORDER BY price DESC';

const save = async (page: Page, name: string) => {
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(TARGET, `${name}.png`) });
};

async function takeStorage(page: Page, user: CheckedClient, origin: string): Promise<void> {
  await user.expect(201, '/api/buckets', { json: { name: 'photos', versioning: true } });
  for (const [index, name] of FILES.entries()) {
    await user.upload('photos', name, Buffer.alloc(90_000 * (index + 1) ** 2, 'x'));
  }
  await page.goto(`${origin}/storage/photos`);
  await page.getByRole('link', { name: 'notes.md' }).waitFor();
  await save(page, 'storage');
}

async function takeMachine(page: Page, user: CheckedClient, origin: string): Promise<void> {
  const json = { name: 'web', image: 'tiny', instance_type: 't2.micro' };
  const { vm_id: id } = await user.expect(201, '/api/vms', { json });
  await user.expect(200, `/api/vms/${id}/start`, { method: 'POST' });
  await page.goto(`${origin}/machines/${id}?tab=console`);
  const shows = (words: RegExp) =>
    eventually(`the console shows ${words}`, async () =>
      words.test(await page.locator('.xterm-rows').innerText()),
    );
  await shows(/root@.*#/);
  // Its last output would otherwise appear in the middle of the typed text.
  await shows(/tiny ready/);
  await page.getByText('running', { exact: true }).waitFor();
  await page.locator('.xterm-helper-textarea').focus();
  await page.keyboard.type('uname -a; free -m\n');
  await shows(/Mem:/);
  await save(page, 'machine');
  await user.expect(200, `/api/vms/${id}/stop?force=true`, { method: 'POST' });
}

async function takeDatabase(page: Page, user: CheckedClient, origin: string): Promise<void> {
  const made = await user.expect(201, '/api/databases', { json: { name: 'shop', engine: 'sqlite' } });
  for (const statement of STATEMENTS) {
    const json = { statement, read_only: false };
    await user.expect(200, `/api/databases/${made.database_id}/query`, { json });
  }
  await page.goto(`${origin}/databases/${made.database_id}?tab=query`);
  await page.getByRole('textbox', { name: 'Query' }).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.press('Delete');
  await page.keyboard.insertText(QUERY);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('cell', { name: 'Teapot' }).waitFor();
  await save(page, 'database');
}

mkdirSync(TARGET, { recursive: true });
const fixture = await ConsoleFixture.open();
try {
  const page = await fixture.signedUp('ada');
  await page.setViewportSize(VIEW);
  const key =
    await page.evaluate(`fetch('/api/account', { headers: { 'cloudlet-session': localStorage.getItem('cloudlet-session') } })
      .then((a) => a.json()).then((a) => a.api_key)`);
  const user = await CheckedClient.open(fixture.cloud.api, String(key));
  await takeStorage(page, user, fixture.cloud.api);
  await takeMachine(page, user, fixture.cloud.api);
  await takeDatabase(page, user, fixture.cloud.api);
} finally {
  await fixture.close();
}
