/** How the console reaches the browser: addresses, compression, policy and weight. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import type { Browser } from 'playwright-core';
import { CloudProcess } from '../harness/cloud-process.ts';
import { launchBrowser, noBrowser } from './browser-kit.ts';
import { assertConsoleBuilt, ConsoleFixture } from './console-kit.ts';

const FIRST_LOAD_MAX_BYTES = 250 * 1024;
const HTML = { accept: 'text/html' };

let cloud: CloudProcess;
before(async () => {
  assertConsoleBuilt();
  cloud = await CloudProcess.start();
});
after(() => cloud?.stop());

const get = (path: string, headers: Record<string, string> = {}) => fetch(cloud.api + path, { headers });

test('a deep link opens the console, and no path of the API ever does', async () => {
  const page = await (await get('/storage/photos?prefix=2026/', HTML)).text();
  assert.match(page, /<div id="root">/);
  for (const path of ['/api/none', '/api', '/api/docs', '/healthz', '/metrics', '/setup', '/readyz/none']) {
    assert.doesNotMatch(await (await get(path, HTML)).text(), /<div id="root">/, path);
  }
  const missing = await get('/api/none', HTML);
  assert.equal(missing.status, 404);
  assert.match(missing.headers.get('content-type') ?? '', /problem\+json/);
});

test('a program that asks for / gets JSON', async () => {
  const index = (await (await get('/')).json()) as { name: string };
  assert.equal(index.name, 'Cloudlet');
});

test('the page at /api says how the console is built', async () => {
  const page = await (await get('/api', HTML)).text();
  assert.match(page, /npm start/);
});

test('assets come compressed and are kept for ever', async () => {
  const page = await (await get('/', HTML)).text();
  const [, script = ''] = /src="(\/assets\/[^"]+\.js)"/.exec(page) ?? [];
  for (const [accepted, used] of [
    ['gzip, br', 'br'],
    ['gzip', 'gzip'],
    ['identity', null],
  ] as const) {
    const answer = await get(script, { 'accept-encoding': accepted });
    assert.equal(answer.headers.get('content-encoding'), used);
    assert.match(answer.headers.get('cache-control') ?? '', /immutable/);
    assert.match(await answer.text(), /createRoot|function/);
  }
});

test('while its script is on the way, the page says so', { skip: noBrowser }, async () => {
  const fixture = await ConsoleFixture.of(cloud);
  const page = await fixture.newPage();
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page.route('**/*.js', (route) => held.then(() => route.continue()));
  await page.goto(`${cloud.api}/sign-in`, { waitUntil: 'commit' });
  const opening = page.getByText('Loading Cloudlet');
  await opening.waitFor();
  release();
  await page.getByText('Welcome back.').waitFor();
  assert.equal(await opening.count(), 0);
  assert.deepEqual(fixture.complaints, []);
  await fixture.browser.close();
});

test('the first load is at most 250 KB of script, compressed', { skip: noBrowser }, async () => {
  const browser: Browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    const scripts: Promise<number>[] = [];
    page.on('response', (response) => {
      if (response.url().endsWith('.js')) scripts.push(response.body().then((body) => gzipSync(body).length));
    });
    await page.goto(`${cloud.api}/sign-in`);
    await page.getByRole('button', { name: 'Sign in' }).waitFor();
    const bytes = (await Promise.all(scripts)).reduce((sum, size) => sum + size, 0);
    assert.ok(bytes > 50_000 && bytes <= FIRST_LOAD_MAX_BYTES, `${bytes} bytes`);
  } finally {
    await browser.close();
  }
});
