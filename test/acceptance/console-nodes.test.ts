/** The page of the nodes of a cluster, for its administrator. In a real browser. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, type CloudProcess } from '../harness/cloud-process.ts';
import { Cluster, noCluster } from '../harness/cluster.ts';
import { noBrowser } from './browser-kit.ts';
import { assertAccessible, assertAsks } from './console-journey.ts';
import { ConsoleFixture, PASSWORD } from './console-kit.ts';

const PATIENCE_MS = 120_000;

describe('the page of nodes', { skip: noBrowser || noCluster }, () => {
  let cluster: Cluster;
  let fixture: ConsoleFixture;
  let host: CloudProcess;
  let front: CloudProcess;
  let page: Page;
  before(async () => {
    cluster = await Cluster.start(2);
    [host, front] = cluster.nodes as [CloudProcess, CloudProcess];
    fixture = await ConsoleFixture.of(host);
    const admin = await CheckedClient.open(host.api, ADMIN_KEY);
    const chief = { username: 'chief', email: 'chief@example.org', password: PASSWORD, is_admin: true };
    await admin.expect(201, '/api/admin/accounts', { json: chief });
    page = await fixture.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    await page.goto(`${host.api}/sign-in`);
    await page.getByLabel('User name').fill('chief');
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation', { name: 'Main' }).waitFor();
  });
  after(async () => {
    await fixture?.browser.close();
    await cluster?.stop();
  });

  const row = (name: string): Locator => page.getByRole('row').filter({ hasText: new RegExp(`^${name}\\b`) });
  const press = (within: Locator, name: string) => within.getByRole('button', { name, exact: true }).click();

  test('an administrator drains a node and resumes it', async () => {
    await page.goto(`${host.api}/administration`);
    await page.getByRole('tab', { name: 'Nodes' }).click();
    await row('host').getByText('this node').waitFor();
    await row('front-1').getByText('up', { exact: true }).waitFor();
    await assertAccessible(page, 'nodes');
    await assertAsks(page, 'Drain');
    await press(row('front-1'), 'Drain');
    await page.getByRole('dialog', { name: 'Drain front-1?' }).waitFor();
    await press(page.getByRole('dialog'), 'Drain');
    await row('front-1').getByText('draining', { exact: true }).waitFor();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await press(row('host'), 'Drain');
    await press(page.getByRole('dialog'), 'Drain');
    await page.getByRole('dialog').getByText('This is the last node that is up').waitFor();
    await press(page.getByRole('dialog'), 'Cancel');
    await press(row('front-1'), 'Resume');
    await row('front-1').getByText('up', { exact: true }).waitFor();
  });

  test('on a phone nothing scrolls sideways, and a node that was stopped is forgotten', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await front.end();
    await row('front-1').getByText('stopped', { exact: true }).waitFor();
    const isWider = 'document.documentElement.scrollWidth > document.documentElement.clientWidth';
    assert.equal(await page.evaluate(isWider), false);
    await assertAccessible(page, 'nodes on a phone');
    await assertAsks(page, 'Forget');
    await press(row('front-1'), 'Forget');
    await press(page.getByRole('dialog'), 'Forget');
    await row('front-1').waitFor({ state: 'detached' });
    assert.deepEqual(fixture.complaints, []);
  });
});
