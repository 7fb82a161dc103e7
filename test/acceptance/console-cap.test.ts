/** The console about prices before a creation, the spend cap, and costs by resource. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { askIn, ConsoleFixture } from './console-kit.ts';
import { cannotRunGuests, idleImage, newVm, removeAll } from './vms-kit.ts';

const skip = noBrowser;
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1280, height: 900 };

let fixture: ConsoleFixture;
let admin: CheckedClient;
before(async () => {
  if (skip) return;
  fixture = await ConsoleFixture.open({
    env: { CLOUDLET_CREDIT_GRACE_SECONDS: '1', CLOUDLET_VM_GRACE_SECONDS: '1' },
  });
  admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
});
after(() => fixture?.close());

const accountOf = async (page: Page) =>
  (await askIn(page, '/api/account')) as { id: number; api_key: string };

/** On a desktop and on a phone. CAP_PICTURES=DIRECTORY stores screenshots, light and dark. */
async function look(page: Page, name: string): Promise<void> {
  const directory = process.env.CAP_PICTURES;
  for (const [size, viewport] of Object.entries({ phone: PHONE, desk: DESK })) {
    await page.setViewportSize(viewport);
    await assertAccessible(page, `${name}, ${size}`);
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      if (directory === undefined) continue;
      await page.screenshot({ path: `${directory}/${name}-${colorScheme}-${size}.png` });
    }
  }
}

test('each form says what it would cost, and how long the credits last with it', { skip }, async () => {
  const page = await fixture.signedUp('planner', '/machines/new');
  await page.getByRole('radio', { name: /t2\.micro/ }).click();
  await page.getByText('Your credits last 35 days with this resource').waitFor();
  await page.getByRole('radio', { name: /t2\.small/ }).click();
  await page.getByText('Your credits last 18 days with this resource').waitFor();
  await look(page, 'new-machine');
  await page.goto(`${fixture.cloud.api}/databases/new`);
  await page.locator('[data-quote]').getByText('Free of charge').waitFor();
  await page.goto(`${fixture.cloud.api}/storage`);
  await page.getByRole('button', { name: 'Create bucket' }).first().click();
  await page.locator('[data-quote]').getByText('Free of charge').waitFor();
  await page.close();
});

test('a cap is set, refused with the field, and told at the overview when it is reached', {
  skip,
}, async () => {
  const page = await fixture.signedUp('capped', '/billing');
  const { id } = await accountOf(page);
  const credits = page.getByLabel('Credits per month');
  const save = page.getByRole('button', { name: 'Save' });
  await credits.fill('much');
  await save.click();
  await page.getByText('must be a number').first().waitFor();
  await credits.fill('5');
  await page.getByLabel('Warn at (percent)').fill('40, 90');
  await save.click();
  await page.getByText('0 of 5.00 credits spent this month').waitFor();
  const { cap, warn_percent } = (await askIn(page, '/api/billing/cap')) as {
    cap: number;
    warn_percent: number[];
  };
  assert.deepEqual([cap, warn_percent], [5, [40, 90]]);
  await admin.expect(200, `/api/admin/accounts/${id}`, { method: 'PATCH', json: { spend_cap: 0 } });
  await page.reload();
  await page.getByText('An administrator has set a cap of 0 credits per month.').waitFor();
  await look(page, 'billing-cap');
  await page.goto(fixture.cloud.api);
  await page.getByText('You have reached your spend cap of 0 credits for this month.').waitFor();
  await page.getByText('Ask an administrator for a higher cap.').waitFor();
  await look(page, 'overview-cap');
  await page.close();
});

test('costs are split by resource, with links and the names of deleted ones', {
  skip: skip || cannotRunGuests(),
}, async () => {
  const page = await fixture.signedUp('spender');
  const user = await CheckedClient.open(fixture.cloud.api, (await accountOf(page)).api_key);
  const idle = await idleImage(admin);
  const runs = async (name: string) => {
    const vm = await newVm(user, { ...idle, name });
    await user.expect(200, `${vm}/start`, { method: 'POST' });
    await eventually('something is spent', async () => {
      const { resources } = await user.expect(200, '/api/billing/usage/resources');
      return resources.some((one: { name: string; cost: number }) => one.name === name && one.cost > 0.00001);
    });
    await user.expect(200, `${vm}/stop?force=true`, { method: 'POST' });
    return vm;
  };
  const gone = await runs('gone');
  await user.expect(200, gone, { method: 'DELETE' });
  await runs('kept');
  await page.goto(`${fixture.cloud.api}/billing?tab=report`);
  await page.getByText('Resource', { exact: true }).first().waitFor();
  await page.getByRole('radiogroup', { name: 'Bars by' }).getByText('Resource').click();
  await page.getByRole('row', { name: /gone \(deleted\)/ }).waitFor();
  await page.getByRole('link', { name: 'kept', exact: true }).waitFor();
  assert.match(page.url(), /by=resource/);
  assert.equal(await page.locator('[data-part]').count(), 4, 'two bars, and two in the legend');
  await look(page, 'costs-by-resource');
  await page.setViewportSize(PHONE);
  const wide = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
  assert.equal(wide, 0, 'the bars of a month fit on a phone');
  await page.setViewportSize(DESK);
  await page.getByRole('link', { name: 'kept', exact: true }).click();
  await page.waitForURL(/\/machines\/vm-/);
  await removeAll(user);
  await page.close();
});
