/**
 * The behaviour of a real browser with users' files on the data origin: it shows images and runs no script.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { launchBrowser, noBrowser } from './browser-kit.ts';
import { bodyOf, fieldPart, filePart, newBucket, rawForm, sendRaw } from './storage-kit.ts';

const skip = noBrowser;

let cloud: CloudProcess;
let browser: Browser;
let sink: Server;
let sinkUrl = '';
/** The reports of scripts to the sink, by the origin of the script. */
let hits: string[] = [];
/** Pages of an ordinary server, by path. */
const pages = new Map<string, { type: string; body: string }>();
let user: Client;
let bucket: string;

before(async () => {
  if (skip) return;
  sink = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://sink');
    if (url.pathname === '/hit') hits.push(url.searchParams.get('who') ?? '');
    const page = pages.get(url.pathname);
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('content-type', page?.type ?? 'text/plain');
    response.end(page?.body ?? '');
  });
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve));
  sinkUrl = `http://127.0.0.1:${(sink.address() as AddressInfo).port}`;
  cloud = await CloudProcess.start();
  user = await new Client(cloud.api).newUser();
  bucket = await newBucket(user);
  browser = await launchBrowser();
});
after(async () => {
  if (skip) return;
  await browser?.close();
  await cloud?.stop();
  sink?.close();
});

/** Reports to the sink in every way available to a script. */
const script = (who: string) => `
  document.title = 'ran';
  fetch('${sinkUrl}/hit?who=${who}', { mode: 'no-cors', keepalive: true });
  new Image().src = '${sinkUrl}/hit?who=${who}';
`;
const html = (
  who: string,
) => `<!doctype html><html><head><title>still</title><script>${script(who)}</script></head>
<body onload="${script(who).replaceAll('"', '&quot;')}"><img src="x:" onerror="fetch('${sinkUrl}/hit?who=${who}')">
</body></html>`;
const xhtml = (who: string) => `<html xmlns="http://www.w3.org/1999/xhtml"><head><title>still</title>
<script>//<![CDATA[${script(who)}//]]></script></head><body/></html>`;
const svg = (who: string) => `<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30">
<script>//<![CDATA[${script(who)}//]]></script><rect width="40" height="30" fill="red"/></svg>`;

interface Hostile {
  readonly name: string;
  readonly type: string;
  readonly content: (who: string) => string;
}
const HOSTILE: readonly Hostile[] = [
  { name: 'page.html', type: 'application/octet-stream', content: html },
  { name: 'page.html', type: 'text/html', content: html },
  { name: 'page.txt', type: 'text/html; charset=utf-8', content: html },
  { name: 'page', type: 'application/xhtml+xml', content: xhtml },
  { name: 'page.xml', type: 'text/xml', content: xhtml },
  { name: 'page.xml', type: 'application/xml', content: xhtml },
  { name: 'image.svg', type: 'application/octet-stream', content: svg },
  { name: 'image.svg', type: 'image/svg+xml', content: svg },
  { name: 'image', type: 'image/svg+xml', content: svg },
  { name: 'image.svg', type: 'text/html', content: (who) => html(who) + svg(who) },
  { name: 'sniffed.png', type: 'image/png', content: html },
  { name: 'sniffed.txt', type: 'text/plain', content: html },
  { name: 'sniffed', type: 'application/octet-stream', content: html },
  { name: 'sniffed.json', type: 'application/json', content: html },
];

/** One file of each type whose scripts a browser runs. */
const RUNNABLE = [...new Map(HOSTILE.map((hostile) => [hostile.type, hostile])).values()].filter(({ type }) =>
  /html|svg|xml/.test(type),
);

async function linkTo(name: string, content: string, type: string): Promise<string> {
  const form = rawForm(fieldPart('name', name), filePart(content, name, type));
  const { object_id } = bodyOf(await sendRaw(user, bucket, form));
  return bodyOf(await user.call(`/api/storage/${object_id}/cdn-url`)).cdn_url;
}

/** A file that the browser saves instead of showing ends the visit with an error, which is harmless. */
async function visit(page: Page, url: string): Promise<void> {
  try {
    await page.goto(url, { waitUntil: 'load' });
  } catch (error) {
    assert.match(String(error), /Download is starting|ERR_ABORTED/);
  }
}

/** Resolves once the sink has received that report. */
async function heard(who: string): Promise<void> {
  const signal = AbortSignal.timeout(30_000);
  while (!hits.includes(who)) await once(sink, 'request', { signal });
}

/** Resolves once the report of a script on an ordinary page has arrived: earlier reports arrive first. */
async function listenOut(page: Page): Promise<void> {
  pages.set('/control.html', { type: 'text/html', body: html('control') });
  await page.goto(`${sinkUrl}/control.html`, { waitUntil: 'load' });
  await heard('control');
  assert.equal(await page.title(), 'ran');
}

for (const [at, { name, type, content }] of HOSTILE.entries()) {
  test(`${name} sent as ${type} runs no script, opened or embedded`, { skip }, async () => {
    const who = `case-${at}`;
    hits = [];
    const page = await browser.newPage();
    try {
      const link = await linkTo(name, content(who), type);
      await visit(page, link);
      assert.notEqual(await page.title(), 'ran');
      const quoted = link.replaceAll('&', '&amp;');
      const tags = ['iframe src', 'embed src', 'object data', 'img src'].map(
        (tag) => `<${tag}="${quoted}"></${tag}>`,
      );
      pages.set('/embed.html', { type: 'text/html', body: `<!doctype html>${tags.join('')}` });
      await page.goto(`${sinkUrl}/embed.html`, { waitUntil: 'load' });
      await listenOut(page);
      assert.deepEqual(
        hits.filter((hit) => hit === who),
        [],
      );
    } finally {
      await page.close();
    }
  });
}

test('the same files from a server without our headers do run', { skip }, async () => {
  for (const [at, { type, content }] of RUNNABLE.entries()) {
    const path = `/plain-${at}`;
    hits = [];
    pages.set(path, { type, body: content(path) });
    const page = await browser.newPage();
    await page.goto(sinkUrl + path, { waitUntil: 'load' });
    await heard(path);
    await page.close();
  }
});

/** The headers alone protect: even if the file were shown instead of saved, no script would run. */
test('shown instead of saved, the files still run nothing', { skip }, async () => {
  for (const { name, type, content } of RUNNABLE) {
    hits = [];
    const page = await browser.newPage();
    await page.route(`${cloud.data}/**`, async (route) => {
      const response = await route.fetch();
      const headers = response.headers();
      delete headers['content-disposition'];
      await route.fulfill({ response, headers });
    });
    await visit(page, await linkTo(name, content('shown'), type));
    assert.notEqual(await page.title(), 'ran');
    await listenOut(page);
    await page.close();
    assert.deepEqual(
      hits.filter((hit) => hit === 'shown'),
      [],
      `${name} as ${type}`,
    );
  }
});

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAIAAAA2iEnWAAAAEElEQVR4nGP4z8AARAwoFABE0AX7pM/egAAAAABJRU5ErkJggg==',
  'base64',
);

test('an image is displayed, opened by its link and embedded in a page', { skip }, async () => {
  const { object_id } = bodyOf(await user.upload(bucket, 'pixel.png', PNG));
  const { cdn_url } = bodyOf(await user.call(`/api/storage/${object_id}/cdn-url`));
  const drawing = await linkTo('drawing.svg', svg('drawing'), 'image/svg+xml');
  hits = [];
  const page = await browser.newPage();
  const sizeOf = (selector: string) =>
    page.locator(selector).evaluate((image) => {
      const { complete, naturalWidth, naturalHeight } = image as unknown as Record<string, unknown>;
      return [complete, naturalWidth, naturalHeight];
    });
  const response = await page.goto(cdn_url, { waitUntil: 'load' });
  assert.equal(response?.status(), 200);
  assert.deepEqual(await sizeOf('img'), [true, 2, 3]);
  const quoted = [cdn_url, drawing].map((url) => url.replaceAll('&', '&amp;'));
  const body = `<!doctype html><img id="png" src="${quoted[0]}"><img id="svg" src="${quoted[1]}">`;
  pages.set('/images.html', { type: 'text/html', body });
  await page.goto(`${sinkUrl}/images.html`, { waitUntil: 'load' });
  assert.deepEqual(await sizeOf('#png'), [true, 2, 3]);
  assert.deepEqual(await sizeOf('#svg'), [true, 40, 30]);
  await page.close();
  assert.deepEqual(hits, []);
});
