/** The settings of a bucket: one tab with sections, each with an address, a summary and its own Save. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, assertAsks } from './console-journey.ts';
import { ConsoleFixture, clientOf } from './console-kit.ts';

const skip = noBrowser;
const SECTIONS = [
  ...['Versions and encryption', 'Access', 'Lifecycle', 'Object lock', 'Cross-origin (CORS)'],
  ...['Tags', 'Audit log'],
];
const PHONE = { width: 390, height: 844 };

let fixture: ConsoleFixture;
before(async () => {
  if (!skip) fixture = await ConsoleFixture.open();
});
after(async () => {
  await fixture?.close();
  assert.deepEqual(fixture?.complaints ?? [], []);
});

async function openedBucket(account: string, address: string): Promise<Page> {
  const page = await fixture.signedUp(account, '/storage');
  await (await clientOf(fixture, page)).call('/api/buckets', { json: { name: account } });
  await page.goto(`${fixture.cloud.api}/storage/${account}${address}`);
  return page;
}

const sectionsOf = (page: Page) => page.getByRole('navigation', { name: 'Sections of the settings' });
const link = (page: Page, name: string) => sectionsOf(page).getByRole('link', { name });

test('sections say what they are set to, at once when it changes', { skip }, async () => {
  const page = await openedBucket('summed', '');
  await page.getByRole('tab', { name: 'Settings' }).click();
  await link(page, 'Tags').waitFor();
  const links = await sectionsOf(page).getByRole('link').allInnerTexts();
  assert.deepEqual(
    links.map((words) => words.split('\n')[0]),
    SECTIONS,
  );
  await assertAccessible(page, 'the first section');
  const current = sectionsOf(page).locator('[aria-current]');
  assert.match((await current.allInnerTexts()).join('|'), /^Versions and encryption\nNo versions$/);
  await link(page, 'Access Only you').click();
  await page.getByRole('heading', { name: 'Who can reach this?' }).waitFor();
  assert.match((await current.allInnerTexts()).join('|'), /^Access\nOnly you$/);
  await page.getByRole('switch', { name: 'Restrict public policies' }).click();
  await page.getByRole('region', { name: 'Public access' }).getByRole('button', { name: 'Save' }).click();
  await link(page, 'Access Public access blocked').waitFor();
  await link(page, 'Tags None').click();
  await page.getByRole('button', { name: 'Add tag' }).click();
  await page.getByRole('textbox', { name: 'Tag', exact: true }).fill('team');
  // Another section and back: the typed text is still there.
  await link(page, 'Lifecycle Off').click();
  await page.getByText('nothing is deleted automatically').waitFor();
  await link(page, 'Tags None').click();
  await page.getByRole('button', { name: 'Save' }).click();
  await link(page, 'Tags team').waitFor();
  await link(page, 'Audit log').click();
  await page.getByRole('radio', { name: /Writes and downloads/ }).click();
  await page.getByRole('button', { name: 'Save' }).click();
  await link(page, 'Audit log Writes and downloads').waitFor();
  await assertAccessible(page, 'the audit log of a bucket');
  await page.close();
});

test('versions and encryption are turned on here, after a question', { skip }, async () => {
  const page = await openedBucket('versions', '?tab=settings');
  await link(page, 'Versions and encryption No versions').waitFor();
  await page.getByRole('button', { name: 'Enable versioning' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Enable versioning' }).click();
  await link(page, 'Versions and encryption Versioned').waitFor();
  await assertAsks(page, 'Disable versioning');
  await page.getByRole('button', { name: 'Enable encryption' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Enable encryption' }).click();
  await link(page, 'Versions and encryption Versioned · Encrypted').waitFor();
  await link(page, 'Object lock').click();
  await page.getByRole('button', { name: 'Enable object lock' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Enable object lock' }).click();
  await link(page, 'Object lock On').waitFor();
  await page.close();
});

test('a section has an address, and those of the former tabs lead to it', { skip }, async () => {
  const page = await openedBucket('address', '?tab=settings#cors');
  const heading = (name: string) => page.getByRole('heading', { name, exact: true });
  await heading('Cross-origin (CORS)').waitFor();
  for (const [tab, section, title] of [
    ['permissions', 'access', 'Access'],
    ['lifecycle', 'lifecycle', 'Lifecycle'],
    ['lock', 'lock', 'Object lock'],
    ['cors', 'cors', 'Cross-origin (CORS)'],
    ['tags', 'tags', 'Tags'],
  ] as const) {
    await page.goto(`${fixture.cloud.api}/storage/address?tab=${tab}`);
    await heading(title).waitFor();
    assert.match(page.url(), new RegExp(`/storage/address\\?tab=settings#${section}$`));
  }
  // Any other value there is not a section.
  await page.goto(`${fixture.cloud.api}/storage/address?tab=settings#nothing`);
  await heading('Versions and encryption').waitFor();
  await page.close();
});

test('on a phone by keyboard alone: the list, a section, and back', { skip }, async () => {
  const page = await openedBucket('phone', '?tab=settings');
  await page.setViewportSize(PHONE);
  await link(page, 'Tags').waitFor();
  assert.equal(await page.getByRole('heading', { name: 'Versions and encryption' }).count(), 0);
  await assertAccessible(page, 'the list of sections');
  await link(page, 'Tags').press('Enter');
  await page.locator('h2:focus', { hasText: 'Tags' }).waitFor();
  assert.equal(await link(page, 'Tags').count(), 0);
  await assertAccessible(page, 'a section on a phone');
  assert.ok(Number(await page.evaluate('document.documentElement.scrollWidth')) <= PHONE.width);
  await page.keyboard.press('Shift+Tab');
  await page.keyboard.press('Enter');
  await page.locator('a:focus', { hasText: 'Tags' }).waitFor();
  await page.close();
});
