/** A machine's name, tags and size in the console, without a running guest. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { notInstalled } from '../../scripts/installed.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, assertAsks, openJourney, stepsOf, type Traveller } from './console-journey.ts';
import { NEW_VM } from './vms-kit.ts';

const skip = noBrowser || notInstalled('qemu-img');
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

step('a snapshot is made, gone back to and deleted, and no question is answered by Enter', async () => {
  const { page, user } = ada;
  await page.getByRole('tab', { name: 'Recovery' }).click();
  await page.getByRole('button', { name: 'Make snapshot' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('<i>one</i>');
  await page.keyboard.press('Enter');
  await page.getByRole('cell', { name: '<i>one</i>', exact: true }).waitFor();
  await dialog.waitFor({ state: 'hidden' });
  await assertAccessible(page, 'the snapshots');
  for (const action of ['Restore', 'Delete']) await assertAsks(page, `${action} <i>one</i>`);
  await page.getByRole('button', { name: 'Restore <i>one</i>' }).click();
  assert.ok(await dialog.getByRole('button', { name: 'Restore' }).isDisabled(), 'before the name is typed');
  await dialog.getByRole('textbox').fill('<b>shop</b>');
  await dialog.getByRole('button', { name: 'Restore' }).click();
  await page.getByText('<b>shop</b> was restored to <i>one</i>').waitFor();
  await page.getByRole('button', { name: 'Delete <i>one</i>' }).click();
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('cell', { name: '<i>one</i>', exact: true }).waitFor({ state: 'detached' });
  assert.deepEqual(await user.expect(200, `/api/vms/${id}/snapshots`), []);
});

step('a machine is rebuilt once its name is typed', async () => {
  const { page } = ada;
  await openMenu('Rebuild from an image');
  const dialog = page.getByRole('dialog');
  await dialog.getByText('All data on its disk (60 GB) is deleted').waitFor();
  await assertAccessible(page, 'the dialog of a rebuild', '[role=dialog]');
  assert.ok(await dialog.getByRole('button', { name: 'Rebuild', exact: true }).isDisabled());
  assert.equal(await dialog.getByLabel('Image', { exact: true }).inputValue(), 'tiny');
  await dialog.getByRole('textbox').fill('<b>shop</b>');
  await dialog.getByRole('button', { name: 'Rebuild', exact: true }).click();
  await page.getByText('<b>shop</b> has a new disk').waitFor();
  await dialog.waitFor({ state: 'hidden' });
});

step('an SSH key is saved by name and chosen for a new machine', async () => {
  const { page, user } = ada;
  await page.goto(`${ada.fixture.cloud.api}/machines/new`);
  await page.getByRole('button', { name: 'Save an SSH key' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name of the key').fill('laptop');
  await dialog.getByLabel('Public key').fill('ssh-rsa nonsense');
  await dialog.getByRole('button', { name: 'Save an SSH key' }).click();
  await dialog.getByText(/too short/).waitFor();
  await assertAccessible(page, 'the dialog of a key', '[role=dialog]');
  const line = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)} ada@laptop`;
  await dialog.getByLabel('Public key').fill(line);
  await dialog.getByRole('button', { name: 'Save an SSH key' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await page.getByRole('checkbox', { name: 'laptop', checked: true }).waitFor();
  await assertAccessible(page, 'the form with a saved key');
  assert.equal((await user.expect(200, '/api/vms')).length, 1, 'the form around the dialog was not sent');
  await assertAsks(page, 'Delete the key laptop');
  await page.getByLabel('Name', { exact: true }).fill('keyed');
  await page.getByRole('checkbox', { name: 'Start immediately' }).uncheck();
  const sent = page.waitForRequest(
    (request) => /\/api\/vms$/.test(request.url()) && request.method() === 'POST',
  );
  await page.getByRole('button', { name: 'Create machine' }).click();
  assert.deepEqual((await sent).postDataJSON().ssh_key_names, ['laptop']);
  await page.getByRole('heading', { level: 1, name: 'keyed' }).waitFor();
});
