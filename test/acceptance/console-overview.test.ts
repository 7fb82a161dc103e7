/** The console's first page: first steps that collapse, resources, and the cost of the month. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf } from './console-kit.ts';
import { cannotRunGuests, removeAll } from './vms-kit.ts';

const skip = noBrowser;
const HALF_HOUR_MS = 1_800_000;

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open();
});
after(() => fixture?.close());

test('the first steps fold to a line once one is done, open again, and stay away when dismissed', {
  skip,
}, async () => {
  const page = await fixture.signedUp('stepper', '/');
  const steps = page.getByRole('region', { name: 'First five minutes' });
  await steps.getByText('Connect a program').waitFor();
  assert.equal(await steps.getByRole('listitem').count(), 4);
  assert.equal(await steps.getByRole('button', { name: 'Show steps' }).count(), 0);
  await (await clientOf(fixture, page)).call('/api/databases', { json: { name: 'shop' } });
  await page.reload();
  await steps.getByText('1 of 4 done').waitFor();
  assert.equal(await steps.getByRole('listitem').count(), 0);
  await steps.getByRole('button', { name: 'Show steps' }).click();
  await steps.getByText('Connect a program').waitFor();
  await page.reload();
  await steps.getByText('Connect a program').waitFor();
  await steps.getByRole('button', { name: 'Hide the first steps permanently' }).click();
  await steps.waitFor({ state: 'detached' });
  await page.reload();
  await page.getByRole('link', { name: 'shop' }).waitFor();
  assert.equal(await steps.count(), 0);
  await page.close();
});

test('databases and the cost of the month are there, in light and on a phone', { skip }, async () => {
  const page = await fixture.signedUp('keeper', '/');
  await (await clientOf(fixture, page)).call('/api/databases', { json: { name: 'ledger' } });
  await page.reload();
  const databases = page.getByRole('region', { name: 'Databases' });
  await databases.getByRole('listitem').filter({ hasText: 'ledger' }).getByText('ready').waitFor();
  await page.getByRole('link', { name: 'Cost this month' }).waitFor();
  await page.getByText('by the end of the month at this rate').waitFor();
  await assertAccessible(page, 'the overview');
  await databases.getByRole('link', { name: 'ledger' }).click();
  await page.getByRole('heading', { name: 'ledger' }).waitFor();
  await page.close();
});

test('steps are not called undone while nobody can say so', { skip }, async () => {
  const page = await fixture.signedUp('unsure', '/');
  await page.getByText('First five minutes').waitFor();
  const body = JSON.stringify({
    code: 'metadata_unavailable',
    title: 'Away',
    detail: 'It is away.',
    status: 503,
  });
  const away = { status: 503, contentType: 'application/problem+json', body };
  await page.route('**/api/vms*', async (route) => {
    // The page also asks by itself: before the click, that would remove the button.
    if ((await page.evaluate('window.clicked')) === true) await route.continue();
    else await route.fulfill(away);
  });
  await page.reload();
  await page.getByRole('alert').getByText('It is away.').waitFor();
  assert.equal(await page.getByText('First five minutes').count(), 0);
  await page.evaluate("addEventListener('click', () => { window.clicked = true }, true)");
  await page.getByRole('button', { name: 'Try again' }).first().click();
  await page.getByText('First five minutes').waitFor();
  await page.close();
});

const guestless = skip || cannotRunGuests();
test('a machine that runs shows its load, and costs by the month', { skip: guestless }, async () => {
  const page = await fixture.signedUp('runner', '/');
  const { key = '' } = await clientOf(fixture, page);
  const user = (await CheckedClient.open(fixture.cloud.api, ADMIN_KEY)).as(key);
  const json = { name: 'web', instance_type: 't2.micro' };
  const { vm_id: vmId } = await user.expect(201, '/api/vms', { json });
  await user.expect(200, `/api/vms/${vmId}/start`, { method: 'POST' });
  const from = new Date(Date.now() - HALF_HOUR_MS).toISOString();
  await eventually('a reading of the machine', async () => {
    const { history = [] } = await user.expect(200, `/api/vms/${vmId}/metrics?from=${from}&step=15`);
    return history.some(({ cpu_percent }: { cpu_percent: number | null }) => cpu_percent !== null);
  });
  await page.reload();
  await page
    .getByRole('region', { name: 'Machines' })
    .getByRole('img', { name: /Processor: \d+ %/ })
    .waitFor();
  await page.goto(`${fixture.cloud.api}/billing`);
  await page.getByText('This month so far').waitFor();
  await removeAll(user);
  await page.close();
});
