/** The audit log in the console: of one's own account, and of the whole cloud. In a real browser. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible } from './console-journey.ts';
import { ConsoleFixture, clientOf, PASSWORD } from './console-kit.ts';
import { assertRoomForLongWords } from './long-words.ts';

describe('the audit log in the console', { skip: noBrowser }, () => {
  let fixture: ConsoleFixture;
  before(async () => {
    fixture = await ConsoleFixture.open();
  });
  after(() => fixture?.close());

  const cells = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });

  test('an owner sees what was done, filters it, and reads on', async () => {
    const page = await fixture.signedUp('ada', '/account');
    const own = await clientOf(fixture, page);
    for (let i = 0; i < 60; i++) await own.call('/api/buckets', { json: { name: `many-${i}` } });
    await own.call('/api/buckets', { json: { name: 'many-0' } });
    await page.reload();
    const section = page.getByRole('region', { name: 'Activity' });
    await section.getByText('many-59').waitFor();
    assert.equal(await section.getByText('many-2', { exact: true }).count(), 0, 'on the next page');
    await section.getByRole('button', { name: 'Show older entries' }).click();
    await section.getByText('many-2', { exact: true }).waitFor();
    await section.getByLabel('On', { exact: true }).fill('many-5');
    await section.getByLabel('On', { exact: true }).press('Enter');
    await section.getByText('many-59').waitFor({ state: 'detached' });
    await section.getByText('many-5', { exact: true }).waitFor();
    await section.getByLabel('On', { exact: true }).fill('');
    await section.getByLabel('On', { exact: true }).press('Enter');
    await section.getByLabel('Outcome').selectOption('refused');
    await section.getByText('many-59').waitFor({ state: 'detached' });
    await cells(page, 'createBucket').getByText('refused').waitFor();
    await assertAccessible(page, 'own activity');
  });

  test('an administrator sees everybody, also on a phone', async () => {
    const admin = await CheckedClient.open(fixture.cloud.api, ADMIN_KEY);
    const chief = { username: 'chief', email: 'chief@example.org', password: PASSWORD, is_admin: true };
    await admin.expect(201, '/api/admin/accounts', { json: chief });
    const page = await fixture.newPage();
    await page.goto(`${fixture.cloud.api}/sign-in`);
    await page.getByLabel('User name').fill('chief');
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
    await page.goto(`${fixture.cloud.api}/administration`);
    await page.getByRole('tab', { name: 'Activity' }).click();
    await cells(page, 'adminCreateAccount').first().waitFor();
    await page.getByLabel('Who', { exact: true }).fill('ada');
    await page.getByLabel('Who', { exact: true }).press('Enter');
    await cells(page, 'many-59').first().waitFor();
    await cells(page, 'adminCreateAccount').first().waitFor({ state: 'detached' });
    await page.setViewportSize({ width: 390, height: 844 });
    // The navigation takes a moment to disappear.
    const fits = 'document.documentElement.scrollWidth <= document.documentElement.clientWidth';
    await eventually('the page fits', () => page.evaluate(fits));
    await assertAccessible(page, 'activity of all');
    await assertRoomForLongWords(page, 'activity of all');
    assert.deepEqual(fixture.complaints, []);
  });
});
