/** Images by name in the console: an administrator fetches one, and a machine is created from it. */
import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, stepsOf } from './console-journey.ts';
import { ConsoleFixture, PASSWORD } from './console-kit.ts';
import { helloDisk, IMAGES } from './images-kit.ts';
import { DEBIAN_PATH, type Mirror, openMirror, sendPart, sendRange } from './images-known-kit.ts';
import { cannotRunGuests, removeAll } from './vms-kit.ts';

const skip = noBrowser || cannotRunGuests();
const step = stepsOf(skip);
const DISK = helloDisk();
/** A folder for screenshots; without it none are stored. */
const PICTURES = process.env.PICTURES;

let fixture: ConsoleFixture;
let mirror: Mirror;
let page: Page;
let admin: CheckedClient;
let chief: CheckedClient;
before(async () => {
  if (skip) return;
  mirror = await openMirror();
  mirror.offer(DISK);
  fixture = await ConsoleFixture.open({ env: { CLOUDLET_IMAGE_MIRROR: mirror.base } });
  admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
  const account = { username: 'chief', email: 'chief@example.org', password: PASSWORD, is_admin: true };
  const { api_key } = await admin.expect(201, '/api/admin/accounts', { json: account });
  chief = admin.as(api_key);
  page = await fixture.newPage();
  page.setDefaultTimeout(30_000);
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto(`${fixture.cloud.api}/sign-in`);
  await page.getByLabel('User name').fill('chief');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
});
after(async () => {
  if (skip) return;
  mirror?.close();
  if (chief !== undefined) await removeAll(chief);
  await fixture?.close();
});

const picture = async (name: string) => {
  if (PICTURES !== undefined) await page.screenshot({ path: `${PICTURES}/${name}.png` });
};

step('a fetch shows how far it is, and is cancelled', async () => {
  mirror.set(DEBIAN_PATH, (response) => {
    sendPart(response, DISK, DISK.length / 2);
    const timer = setInterval(() => response.write(DISK.subarray(0, 1)), 500);
    response.on('close', () => clearInterval(timer));
  });
  await page.goto(`${fixture.cloud.api}/administration?tab=images`);
  await page.getByText('SHA512SUMS').first().waitFor();
  await assertAccessible(page, 'the images by name');
  await picture('images-none');
  await page.getByRole('button', { name: 'Download Debian 13 (trixie)', exact: true }).click();
  await page.getByText(/^50 %: .* of 1\.0[0-9]? MB$/).waitFor();
  const bar = page.getByRole('progressbar', { name: 'Download of Debian 13 (trixie)' });
  assert.equal(await bar.getAttribute('aria-valuenow'), '50');
  await assertAccessible(page, 'a fetch in progress');
  await picture('images-fetching');
  await page.getByRole('button', { name: 'Cancel Debian 13 (trixie)' }).click();
  await page.getByRole('button', { name: 'Download Debian 13 (trixie)', exact: true }).waitFor();
  await eventually('no image', async () => (await admin.expect(200, IMAGES)).length === 0);
});

step('a failure is told with its reason, and the next try is one button away', async () => {
  mirror.set(DEBIAN_PATH, (response) => response.writeHead(404).end());
  await page.getByRole('button', { name: 'Download Debian 13 (trixie)', exact: true }).click();
  await page.getByText('the server answered 404').first().waitFor();
  await picture('images-failed');
  mirror.set(DEBIAN_PATH, (response, range) => sendRange(response, DISK, range));
  await page.getByRole('button', { name: 'Download Debian 13 (trixie)', exact: true }).click();
  await page.getByRole('button', { name: 'Download Debian 13 (trixie) again' }).waitFor();
  await picture('images-ready');
});

step('the form for a machine offers it by title, with who logs in, and makes one by its name', async () => {
  await page.goto(`${fixture.cloud.api}/machines/new`);
  const tile = page.getByRole('radio', { name: /Debian 13 \(trixie\)/ });
  await tile.waitFor();
  assert.match(await tile.innerText(), /Your keys log in as root and debian\s+Set up by cloud-init/);
  await tile.click();
  await picture('machine-form');
  await page.getByLabel('Name', { exact: true }).fill('trixie');
  await assertAccessible(page, 'the form with the image');
  await page.getByRole('button', { name: 'Create and start' }).click();
  await page.getByRole('heading', { level: 1, name: 'trixie' }).waitFor();
  const [image] = await admin.expect(200, IMAGES);
  const [vm] = await chief.expect(200, '/api/vms');
  assert.equal(vm.image, image.image_id);
  await eventually('its boot sector to say hello', async () => {
    const { body } = await chief.call(`/api/vms/${vm.vm_id}/log`);
    return String(body).includes('hello');
  });
  assert.deepEqual(fixture.complaints, []);
});
