/** The API reference, alone and in the console: it does not violate its policy, and requests are sent. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { FrameLocator, Page } from 'playwright-core';
import { Client } from '../harness/client.ts';
import { noBrowser } from './browser-kit.ts';
import { ConsoleFixture } from './console-kit.ts';

interface Call {
  readonly id: string;
  readonly path: string;
}
const LIST: Call = { id: 'listBuckets', path: '/api/buckets' };

describe('the API reference', { skip: noBrowser }, () => {
  let fixture: ConsoleFixture;
  before(async () => {
    fixture = await ConsoleFixture.open();
  });
  after(() => fixture?.close());

  /** Opens the form of this call in `view` and sends it: returns status and headers of the request. */
  async function send(page: Page, view: Page | FrameLocator, { id, path }: Call) {
    await view
      .locator(`[id$="/${id}"]`)
      .getByRole('button', { name: /^Test Request/ })
      .click();
    const answer = page.waitForResponse((response) => new URL(response.url()).pathname === path);
    await view.getByRole('button', { name: /^Send/ }).first().click();
    const response = await answer;
    return { status: response.status(), sent: await response.request().allHeaders() };
  }

  test('a link to a call shows it, with its permission and example; the server alone is asked', async () => {
    const page = await fixture.newPage();
    await page.goto(`${fixture.cloud.api}/api/docs#createBucket`);
    const call = page.locator('[id$="/createBucket"]');
    await call.getByRole('heading', { name: 'Create a bucket' }).waitFor();
    await call.getByText('Needs a key with the scope storage:write').waitFor();
    await call.getByText('-H "X-API-Key: $KEY"').waitFor();
    assert.deepEqual(fixture.complaints, []);
  });

  test('a request is sent with the key that was typed', async () => {
    const page = await fixture.newPage();
    const { api_key: key } = await new Client(fixture.cloud.api).register();
    await page.goto(`${fixture.cloud.api}/api/docs#listBuckets`);
    await page.locator('[id$="/listBuckets"]').waitFor();
    await page.goto(`${fixture.cloud.api}/api/docs#listBuckets`);
    const none = await send(page, page, LIST);
    assert.equal(none.status, 401);
    await page.getByPlaceholder('QUxMIFlPVVIgQkFTRSBBUkUgQkVMT05HIFRPIFVT').last().fill(key);
    const answer = page.waitForResponse((response) => response.url().endsWith('/api/buckets'));
    await page.getByRole('button', { name: /^Send/ }).first().click();
    assert.equal((await answer).status(), 200);
    assert.deepEqual(fixture.complaints, []);
  });

  test('within the console it is loaded when opened, and sends as the user who is signed in', async () => {
    const page = await fixture.signedUp('reader');
    const loaded: string[] = [];
    page.on('request', (request) => loaded.push(request.url()));
    await page.getByRole('link', { name: 'API reference' }).waitFor();
    assert.ok(!loaded.some((url) => url.includes('scalar')));
    await page.getByRole('link', { name: 'API reference' }).click();
    await page.waitForURL('**/reference');
    const frame = page.frameLocator('iframe[title="API reference"]');
    await frame.getByRole('link', { name: 'storage' }).click();
    const { status, sent } = await send(page, frame, LIST);
    assert.equal(status, 200);
    assert.ok(sent['cloudlet-session']);
    assert.ok(loaded.some((url) => url.includes('/assets/scalar-')));
    assert.deepEqual(fixture.complaints, []);
  });

  test('the address of a problem shows its cause and fix, without the library', async () => {
    const page = await fixture.newPage();
    const loaded: string[] = [];
    page.on('request', (request) => loaded.push(request.url()));
    await page.goto(`${fixture.cloud.api}/api/docs#error-vm_not_stopped`);
    await page.locator('#error-vm_not_stopped').waitFor({ state: 'visible' });
    assert.ok(!loaded.some((url) => url.includes('scalar')));
    await page.getByRole('link', { name: 'All calls' }).click();
    await page.getByRole('heading', { name: 'Cloudlet' }).waitFor();
    assert.ok(!(await page.locator('#error-vm_not_stopped').isVisible()));
    assert.deepEqual(fixture.complaints, []);
  });
});
