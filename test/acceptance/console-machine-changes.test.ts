/** A machine's name, tags and size in the console, without a guest that runs. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, openJourney, stepsOf, type Traveller } from './console-journey.ts';
import { NEW_VM } from './vms-kit.ts';

const skip = noBrowser;
const step = stepsOf(skip);
let ada: Traveller;
let id = '';
before(async () => {
  if (skip) return;
  ada = await openJourney('/machines');
  id = (await ada.user.expect(201, '/api/vms', { json: NEW_VM })).vm_id;
});
after(async () => {
  if (!skip) await ada?.fixture.close();
});

const openMenu = async (item: string) => {
  const { page } = ada;
  await page.getByRole('button', { name: /^Actions for / }).click();
  await page.getByRole('menuitem', { name: item }).click();
};

step('name, tags, size and disk change in one dialog, and show at once', async () => {
  const { page, user } = ada;
  await page.goto(`${ada.fixture.cloud.api}/machines/${id}`);
  await openMenu('Rename, tag or resize');
  const dialog = page.getByRole('dialog');
  await dialog.locator('input:focus').waitFor();
  await assertAccessible(page, 'the dialog of changes', '[role=dialog]');
  assert.ok(await dialog.getByRole('button', { name: 'Save changes' }).isDisabled());
  await dialog.getByLabel('Name', { exact: true }).fill('<b>shop</b>');
  await dialog.getByLabel('Tags').fill('blog');
  await page.keyboard.press('Enter');
  await dialog.getByLabel('Size', { exact: true }).selectOption('t2.small');
  await dialog.getByLabel('Disk, in GB').fill('60');
  await dialog.getByRole('button', { name: 'Save changes' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await page.getByRole('heading', { level: 1, name: '<b>shop</b>' }).waitFor();
  await page.getByText('t2.small: 1 vCPU').waitFor();
  const vm = await user.expect(200, `/api/vms/${id}`);
  assert.deepEqual(
    [vm.name, vm.tags, vm.instance_type, vm.disk_gb],
    ['<b>shop</b>', 'a,b,blog', 't2.small', 60],
  );
  await eventually('chips of the tags', async () =>
    /a.*b.*blog/s.test(await page.getByText('Tags', { exact: true }).locator('xpath=../..').innerText()),
  );
});
