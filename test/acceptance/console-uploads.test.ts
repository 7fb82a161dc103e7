/** Uploads in the console with failures: nothing is lost silently, and resumable uploads continue. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { freePort } from '../harness/free-port.ts';
import { eventually } from '../harness/waiting.ts';
import { noBrowser } from './browser-kit.ts';
import { askIn, axeFaults, ConsoleFixture, clientOf, dropFiles, PASSWORD, uploaded } from './console-kit.ts';

const skip = noBrowser;
const BIG = 'x'.repeat(3 * 1024 * 1024);
/** Bytes per second: the large file takes longer than any host needs to check it. */
const SLOW = 64 * 1024;

let fixture: ConsoleFixture;
before(async () => {
  // The page reconnects to the cloud when it is restarted.
  if (!skip) fixture = await ConsoleFixture.open({ env: { CLOUDLET_PORT: String(await freePort()) } });
});
after(() => fixture?.close());

/** Limits the upload speed of the page from now on; 0: unlimited. */
async function throttled(page: Page): Promise<(bytesPerSecond: number) => Promise<void>> {
  const session = await page.context().newCDPSession(page);
  await session.send('Network.enable');
  return async (bytesPerSecond) => {
    const uploadThroughput = bytesPerSecond === 0 ? -1 : bytesPerSecond;
    const conditions = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput };
    await session.send('Network.emulateNetworkConditions', conditions);
  };
}

/** Resolves when a part of a file is being sent, and more parts follow. */
const underWay = (page: Page) =>
  eventually('a file is half sent', () =>
    page
      .getByText(/^[1-9]\d? %$/)
      .first()
      .isVisible(),
  );

test('a server that is killed in the middle loses nothing: the upload goes on by itself', {
  skip,
}, async () => {
  const page = await fixture.signedUp('steady', '/storage');
  const limit = await throttled(page);
  await limit(SLOW);
  await dropFiles(page, { 'big.bin': BIG, 'small.txt': 'words' });
  await underWay(page);
  await fixture.cloud.crash();
  await page.getByText('The connection was lost').waitFor();
  assert.equal(await page.getByText('failed').count(), 0, 'it waits');
  await limit(0);
  await fixture.cloud.start();
  await uploaded(page, 2);
  await page.getByText('The connection was lost').waitFor({ state: 'detached' });
  const client = await clientOf(fixture, page);
  const { body } = await client.call('/api/buckets/uploads/files?include_versions=true');
  assert.deepEqual(
    body.map(({ name, size }: { name: string; size: number }) => [name, size]),
    [
      ['big.bin', BIG.length],
      ['small.txt', 5],
    ],
  );
  await page.close();
});

test('a session that ends in the middle: uploads wait for the same person to sign in', { skip }, async () => {
  const page = await fixture.signedUp('interrupted', '/storage');
  const client = await clientOf(fixture, page);
  const names = Array.from({ length: 5 }, (_, i) => `file-${i}.bin`);
  const { promise: isSignedOut, resolve: goOn } = Promise.withResolvers<void>();
  await page.route('**/upload', async (route) => {
    if (!route.request().postData()?.includes('file-0.bin')) await isSignedOut;
    await route.continue();
  });
  await dropFiles(page, Object.fromEntries(names.map((name) => [name, BIG])));
  await page.getByText('1 of 5 uploaded').waitFor();
  await askIn(page, '/api/logout', 'POST');
  goOn();
  await page.getByText('Your session ended').waitFor();
  await page.getByText(/not been uploaded yet/).waitFor();
  await page.getByLabel('User name or e-mail address').fill('interrupted');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await uploaded(page, 5);
  const { body } = await client.call('/api/buckets/uploads/files');
  assert.deepEqual(
    body.map(({ name, size }: { name: string; size: number }) => [name, size]),
    names.map((name) => [name, BIG.length]),
  );
  await page.close();
});

test('who signs in afterwards sees nothing of somebody else, in any tab', { skip }, async () => {
  const page = await fixture.signedUp('private', '/storage');
  const second = await fixture.newPage(page.context());
  await second.goto(`${fixture.cloud.api}/storage`);
  await second.getByRole('button', { name: 'Signed in as private' }).waitFor();
  await page.route('**/upload', () => {});
  await dropFiles(page, { 'secret plans.txt': 'words' });
  await page.getByText('secret plans.txt').first().waitFor();
  await page.getByRole('button', { name: 'Signed in as private' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByText(/One file has not been uploaded yet/).waitFor();
  await second.getByText('Welcome back').waitFor();
  await page.getByLabel('User name or e-mail address').fill('steady');
  await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Main' }).waitFor();
  await page.getByRole('region', { name: 'Uploads' }).waitFor({ state: 'detached' });
  assert.equal(await page.getByText('secret plans.txt').count(), 0);

  // Without signing out first: the session of the browser now belongs to another account.
  await second.goto(`${fixture.cloud.api}/sign-in`);
  await second.getByLabel('User name or e-mail address').fill('private');
  await second.getByLabel('Password', { exact: true }).fill(PASSWORD);
  await second.getByRole('button', { name: 'Sign in' }).click();
  await second.getByRole('button', { name: 'Signed in as private' }).waitFor();
  await page.getByRole('button', { name: 'Signed in as private' }).waitFor();
  await second.close();
  await page.close();
});

test('an upload that fails says why and is sent again, also after leaving the page', { skip }, async () => {
  const page = await fixture.signedUp('unlucky', '/storage');
  await page.route('**/upload', (route) => {
    const isBig = route.request().postData()?.includes('big.bin') === true;
    return isBig ? route.abort('connectionreset') : route.continue();
  });
  await dropFiles(page, { 'small.bin': 'x', 'big.bin': 'x'.repeat(100_000) });
  await page.getByText('1 of 2 uploaded · 1 failed').waitFor();
  const tray = page.getByRole('region', { name: 'Uploads' });
  await tray.getByRole('listitem').first().getByText('Cloudlet does not answer').waitFor();
  await page.setViewportSize({ width: 390, height: 800 });
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    assert.deepEqual(await axeFaults(page, '[aria-label=Uploads]'), []);
  }
  assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
  await page.setViewportSize({ width: 1280, height: 720 });
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByText('First five minutes').waitFor();
  await page.unroute('**/upload');
  await page.getByRole('button', { name: 'Retry failed uploads' }).click();
  await uploaded(page, 2);
  await page.close();
});

test('of 2,000 files those that are sent stand on top, those that failed below them', {
  skip,
}, async () => {
  const page = await fixture.signedUp('crowd', '/storage');
  let asked = 0;
  await page.route('**/upload', (route) => {
    asked++;
    if (asked > 20) return;
    if (asked % 10 !== 0) return route.continue();
    const body = JSON.stringify({
      code: 'invalid_request',
      title: 'Refused',
      detail: 'Refused by the test',
      status: 400,
    });
    return route.fulfill({ status: 400, contentType: 'application/problem+json', body });
  });
  const names = Array.from({ length: 2000 }, (_, i) => `crowd/file-${i}`);
  await dropFiles(page, Object.fromEntries(names.map((name) => [name, name])));
  await page.getByText('18 of 2,000 uploaded · 2 failed').waitFor();
  const rows = page.getByRole('region', { name: 'Uploads' }).getByRole('listitem');
  const words = async () => (await rows.allInnerTexts()).map((row) => row.split('\n').at(-1)?.trim());
  await eventually('three are under way', () => asked === 23);
  await eventually('they stand first', async () =>
    /^\d+ %,\d+ %,\d+ %,Refused.*,Refused.*,\d+ B/.test((await words()).join()),
  );
  await page.close();
});

test('a cancelled upload stores nothing and can be sent again, and 300 files at once all arrive', {
  skip,
}, async () => {
  const page = await fixture.signedUp('busy', '/storage');
  const client = await clientOf(fixture, page);
  await page.route('**/upload', () => {});
  await dropFiles(page, { 'huge.bin': 'x'.repeat(10_000), 'also.bin': 'y' });
  await page.getByRole('button', { name: 'Cancel huge.bin' }).click();
  await page.getByText('0 of 2 uploaded · 1 cancelled').waitFor();
  await page.getByRole('button', { name: 'Cancel all' }).click();
  await page.getByText('0 of 2 uploaded · 2 cancelled').waitFor();
  await page.unroute('**/upload');
  assert.deepEqual((await client.call('/api/buckets/uploads/files')).body, []);
  await page.getByRole('button', { name: 'Retry huge.bin' }).click();
  await page.getByText('1 of 2 uploaded · 1 cancelled').waitFor();
  await page.getByRole('button', { name: 'Close uploads' }).click();
  await page.getByRole('region', { name: 'Uploads' }).waitFor({ state: 'detached' });
  const names = Array.from({ length: 300 }, (_, i) => `file-${i}`);
  await dropFiles(page, Object.fromEntries(names.map((name) => [name, name])));
  await uploaded(page, 300);
  const files: { name: string }[] = (await client.call('/api/buckets/uploads/files')).body;
  assert.deepEqual(files.map(({ name }) => name).sort(), ['huge.bin', ...names].toSorted());
  await page.close();
});
