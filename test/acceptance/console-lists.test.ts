/** Lists of the console: filtered, sorted, dense, and with one action for several rows. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf } from './console-kit.ts';

const skip = noBrowser;

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open();
});
after(() => fixture?.close());

/** The first cells of the rows, from top to bottom. */
const namesIn = (page: Page) => page.locator('tbody tr td:first-child a').allInnerTexts();
const rowsAre = (page: Page, names: readonly string[]) =>
  eventually(`the rows ${names}`, async () => (await namesIn(page)).join() === names.join());

async function withMachines(name: string, machines: readonly object[]): Promise<Page> {
  const page = await fixture.signedUp(name, '/machines');
  const client = await clientOf(fixture, page);
  for (const json of machines) {
    const { status, body } = await client.call('/api/vms', { json: { instance_type: 't2.micro', ...json } });
    assert.equal(status, 201, JSON.stringify(body));
  }
  await page.reload();
  return page;
}

test('machines are filtered and sorted, and the address of the page keeps it', { skip }, async () => {
  const page = await withMachines('sorter', [
    { name: 'web-10', tags: 'blog' },
    { name: 'web-9' },
    { name: 'mail', instance_type: 't2.small', tags: 'blog,production' },
  ]);
  await page.getByText('production', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Name', exact: true }).click();
  await rowsAre(page, ['mail', 'web-9', 'web-10']);
  await page.getByRole('button', { name: 'Name', exact: true }).click();
  await rowsAre(page, ['web-10', 'web-9', 'mail']);
  assert.equal(await page.locator('th[aria-sort=descending]').innerText(), 'Name');
  await page.getByRole('searchbox', { name: 'Filter' }).fill('BLOG');
  await rowsAre(page, ['web-10', 'mail']);
  await page.getByText('2 of 3', { exact: true }).waitFor();
  await page.reload();
  await rowsAre(page, ['web-10', 'mail']);
  await page.getByRole('button', { name: 'Dense rows' }).click();
  await assertAccessible(page, 'a list');
  await page.getByRole('searchbox', { name: 'Filter' }).fill('<b>');
  await page.getByText('Nothing matches the filter.').waitFor();
  await page.getByRole('button', { name: 'Clear filter' }).click();
  await rowsAre(page, ['web-10', 'web-9', 'mail']);
  await page.close();
});

test('several machines are deleted at once, after their number was typed; others stay', {
  skip,
}, async () => {
  const page = await withMachines('deleter', [{ name: 'a' }, { name: 'b' }, { name: 'c' }]);
  await page.getByRole('checkbox', { name: 'Select a', exact: true }).check();
  await page.getByRole('checkbox', { name: 'Select c', exact: true }).check();
  const bar = page.getByRole('group', { name: '2 machines selected' });
  await bar.getByRole('button', { name: 'Delete' }).click();
  const dialog = page.getByRole('dialog', { name: 'Delete 2 machines?' });
  await dialog.getByRole('button', { name: 'Cancel' }).and(page.locator(':focus')).waitFor();
  const act = dialog.getByRole('button', { name: 'Delete 2 machines' });
  assert.ok(await act.isDisabled(), 'before the number is typed');
  await dialog.getByLabel('Type 2 to confirm').fill('2');
  await assertAccessible(page, 'the question', '[role=dialog]');
  await act.click();
  await dialog.getByText('2 of 2 done').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await rowsAre(page, ['b']);
  await page.close();
});

test('a refusal of one is shown at its name, and the others are done', { skip }, async () => {
  const page = await withMachines('refused', [{ name: 'first' }, { name: 'second' }]);
  await page.getByRole('checkbox', { name: 'Select all 2' }).check();
  await page.getByRole('button', { name: 'Delete', exact: true }).click();
  // As when another user is just starting it.
  const client = await clientOf(fixture, page);
  const { body } = await client.call('/api/vms');
  const { vm_id: id } = body.find(({ name }: { name: string }) => name === 'first');
  await page.route(`**/api/vms/${id}/stop*`, (route) =>
    route.fulfill({ status: 409, json: { code: 'vm_locked', detail: 'Another action is in progress' } }),
  );
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Type 2 to confirm').fill('2');
  await dialog.getByRole('button', { name: 'Delete 2 machines' }).click();
  const line = (name: string) => dialog.getByRole('listitem').filter({ hasText: name });
  await line('second').getByText('done').waitFor();
  await line('first').getByText('Another action is in progress').waitFor();
  await dialog.getByText('1 of 2 done, 1 refused').waitFor();
  await page.unroute(`**/api/vms/${id}/stop*`);
  await dialog.getByRole('button', { name: 'Try the rest again' }).click();
  await dialog.getByText('2 of 2 done').waitFor();
  await page.close();
});

test('of ten thousand databases two hundred are drawn, and the filter finds each', { skip }, async () => {
  const page = await fixture.signedUp('many', '/');
  const client = await clientOf(fixture, page);
  const made = await client.call('/api/databases', { json: { name: 'one' } });
  assert.equal(made.status, 201);
  const [row] = (await client.call('/api/databases')).body;
  const all = Array.from({ length: 10_000 }, (_, at) => ({
    ...row,
    database_id: `${row.database_id}${at}`,
    name: `db-${at}`,
  }));
  await page.route(/\/api\/databases(\?(?!.*deleted).*)?$/, (route) => route.fulfill({ json: all }));
  await page.goto(`${fixture.cloud.api}/databases`);
  await page.getByText('10,000', { exact: true }).waitFor();
  // A few at a time, and only these.
  await eventually('two hundred rows', async () => (await page.locator('tbody tr').count()) === 200);
  await page.getByRole('button', { name: 'Show 200 more' }).waitFor();
  assert.equal(await page.locator('tbody tr').count(), 200);
  await page.getByRole('button', { name: 'Show 200 more' }).click();
  await eventually('more rows', async () => (await page.locator('tbody tr').count()) === 400);
  await page.getByRole('searchbox', { name: 'Filter' }).fill('db-9876');
  await rowsAre(page, ['db-9876']);
  await page.close();
});

test('columns are hidden and shown again, and the address of the page keeps it', { skip }, async () => {
  const page = await withMachines('chooser', [{ name: 'only' }]);
  await rowsAre(page, ['only']);
  const headings = () => page.locator('thead th').allInnerTexts();
  assert.ok((await headings()).includes('Price'));
  const menu = page.getByRole('button', { name: 'Columns' });
  await menu.press('Enter');
  const price = page.getByRole('menuitemcheckbox', { name: 'Price' });
  await price.and(page.locator('[aria-checked=true]')).press('Enter');
  await price.and(page.locator('[aria-checked=false]')).waitFor();
  await assertAccessible(page, 'the columns', '[role=menu]');
  await page.keyboard.press('Escape');
  await menu.and(page.locator(':focus')).waitFor();
  await page.reload();
  await rowsAre(page, ['only']);
  assert.deepEqual((await headings()).map((name) => name.trim()).filter(Boolean), [
    'Name',
    'State',
    'Size',
    'Address',
    'Created',
    'Actions',
  ]);
  await menu.press('Enter');
  await price.press('Enter');
  await page.locator('thead').getByText('Price').waitFor();
  await page.close();
});

/** Selects two of three rows, and answers the question; one is left. */
async function endTwo(page: Page, words: Readonly<{ ask: string; answer: string }>): Promise<void> {
  for (const name of ['one', 'two']) {
    await page.getByRole('checkbox', { name: new RegExp(`Select .*\\b${name}\\b`) }).check();
  }
  await page.locator('tbody input[type=checkbox]').first().press('Delete');
  const dialog = page.getByRole('dialog', { name: words.ask });
  await dialog.getByLabel('Type 2 to confirm').fill('2');
  await dialog.getByRole('button', { name: words.answer }).click();
  await dialog.getByText('2 of 2 done').waitFor();
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await eventually(
    'one is left',
    async () => (await page.locator('tbody input[type=checkbox]').count()) === 1,
  );
}

test('several access keys are revoked, databases and webhooks deleted; others stay', { skip }, async () => {
  const page = await fixture.signedUp('ender', '/account');
  const client = await clientOf(fixture, page);
  for (const name of ['one', 'two', 'three']) {
    const scoped = { name, scopes: ['storage:read'] };
    const events = ['vm.stopped'];
    for (const [path, json] of [
      ['/api/account/access-keys', scoped],
      ['/api/databases', { name }],
      ['/api/webhooks', { url: `https://example.com/${name}`, events }],
    ] as const) {
      const { status, body } = await client.call(path, { json });
      assert.equal(status, 201, JSON.stringify(body));
    }
  }
  await page.reload();
  await endTwo(page, { ask: 'Revoke 2 access keys?', answer: 'Revoke 2 access keys' });
  await page.goto(`${fixture.cloud.api}/databases`);
  await endTwo(page, { ask: 'Delete 2 databases?', answer: 'Delete 2 databases' });
  await page.goto(`${fixture.cloud.api}/webhooks`);
  await endTwo(page, { ask: 'Delete 2 webhooks?', answer: 'Delete 2 webhooks' });
  const left = async (path: string) => (await client.call(path)).body;
  assert.deepEqual(
    [
      (await left('/api/account/access-keys')).map(({ name }: { name: string }) => name),
      (await left('/api/databases')).map(({ name }: { name: string }) => name),
      (await left('/api/webhooks')).map(({ url }: { url: string }) => url),
    ],
    [['three'], ['three'], ['https://example.com/three']],
  );
  await page.close();
});
