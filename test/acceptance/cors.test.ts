/**
 * Scripts of other sites: those that the operator allows may call the API with a key, and all may read links.
 */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { CheckedClient } from '../harness/checked-client.ts';
import { sessionOf } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { launchBrowser, noBrowser } from './browser-kit.ts';

const skip = noBrowser;
const APP = 'https://app.example.com';
const PREFLIGHT = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-api-key' };

/** An empty page of its own origin. */
async function openSite(): Promise<{ server: Server; origin: string }> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>site</title>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

const [named, stranger] = [await openSite(), await openSite()];
const cloud = await CloudProcess.start({ env: { CLOUDLET_CORS_ORIGINS: `${APP},${named.origin}` } });
after(async () => {
  await cloud.stop();
  for (const { server } of [named, stranger]) server.close();
});
const client = await CheckedClient.open(cloud.api);
const account = await client.register();
const user = client.as(account.api_key);
await user.expect(201, '/api/buckets', { json: { name: 'shared' } });
const { body: object } = await user.upload('shared', 'a.txt', 'hello world');
const { cdn_url } = await user.expect(200, `/api/storage/${object.object_id}/cdn-url`);

/** The CORS headers and Vary of an answer. */
function corsOf({ headers }: { headers: Headers }): Record<string, string> {
  const isCors = ([name]: [string, string]) => name.startsWith('access-control-') || name === 'vary';
  return Object.fromEntries([...headers].filter(isCors));
}

describe('the API, for sites that are named', () => {
  test('every answer names the one that asked, and what it may read', async () => {
    for (const [path, status] of [
      ['/api/buckets', 200],
      ['/api/nothing', 404],
      ['/healthz', 200],
    ] as const) {
      const answer = await user.call(path, { headers: { origin: APP } });
      assert.equal(answer.status, status);
      const cors = corsOf(answer);
      assert.equal(cors['access-control-allow-origin'], APP);
      assert.match(cors.vary ?? '', /\bOrigin\b/);
      for (const name of ['ETag', 'Link', 'RateLimit', 'X-Request-Id', 'Location', 'Content-Disposition'])
        assert.match(cors['access-control-expose-headers'] ?? '', new RegExp(`\\b${name}\\b`));
      assert.equal(cors['access-control-allow-credentials'], undefined);
    }
  });

  test('a preflight is answered without a key, on any path', async () => {
    for (const path of ['/api/buckets', '/api/storage/obj-x', '/api/nothing']) {
      const response = await fetch(cloud.api + path, {
        method: 'OPTIONS',
        headers: { origin: APP, ...PREFLIGHT },
      });
      assert.equal(response.status, 204);
      const cors = corsOf(response);
      assert.equal(cors['access-control-allow-origin'], APP);
      assert.equal(cors['access-control-allow-methods'], 'GET, HEAD, POST, PATCH, DELETE');
      for (const name of ['X-API-Key', 'Authorization', 'Content-Type', 'Idempotency-Key', 'Prefer', 'Range'])
        assert.match(cors['access-control-allow-headers'] ?? '', new RegExp(`(^|, )${name}(,|$)`));
    }
  });

  test('others get the same answer for all, and no preflight', async () => {
    for (const origin of ['https://app.example.com.evil.example', 'http://app.example.com', 'null', '*']) {
      const headers = { origin };
      assert.deepEqual(corsOf(await user.call('/api/buckets', { headers })), { vary: 'Origin' }, origin);
      const init = { method: 'OPTIONS', headers: { ...headers, ...PREFLIGHT } };
      const response = await fetch(`${cloud.api}/api/buckets`, init);
      assert.deepEqual([response.status, corsOf(response)], [405, { vary: 'Origin' }], origin);
    }
    assert.deepEqual(corsOf(await user.call('/api/buckets')), { vary: 'Origin' });
  });

  test('beside another Vary', async () => {
    const { headers } = await user.call('/api/billing/usage', { headers: { origin: APP } });
    assert.equal(headers.get('vary'), 'Origin, Accept');
  });

  test('an OPTIONS that is no preflight is refused as ever', async () => {
    const { status, headers } = await user.call('/api/buckets', {
      method: 'OPTIONS',
      headers: { origin: APP },
    });
    assert.deepEqual([status, headers.get('allow')], [405, 'POST, GET, HEAD']);
  });
});

test('with * every site is let in, and the answer depends on none', async () => {
  const open = await CloudProcess.start({ env: { CLOUDLET_CORS_ORIGINS: '*' } });
  try {
    for (const headers of [{}, { origin: 'https://any.example' }] as Record<string, string>[]) {
      const cors = corsOf(await fetch(`${open.api}/healthz`, { headers }));
      assert.equal(cors['access-control-allow-origin'], '*');
      assert.equal(cors['access-control-allow-credentials'], undefined);
      assert.equal(cors.vary, undefined);
    }
  } finally {
    await open.stop();
  }
});

describe('links of the data origin, for all', () => {
  test('GET, HEAD and their refusals say so', async () => {
    for (const [url, init, status] of [
      [cdn_url, {}, 200],
      [cdn_url, { method: 'HEAD' }, 200],
      [cdn_url, { headers: { range: 'bytes=0-4' } }, 206],
      [`${cdn_url}x`, {}, 403],
    ] as const) {
      const response = await fetch(url, init);
      await response.arrayBuffer();
      assert.equal(response.status, status);
      const cors = corsOf(response);
      assert.equal(cors['access-control-allow-origin'], '*');
      assert.match(cors['access-control-expose-headers'] ?? '', /ETag.*Content-Range/);
    }
  });

  test('a preflight allows reading alone', async () => {
    const headers = { origin: 'https://any.example', 'access-control-request-method': 'GET' };
    const response = await fetch(cdn_url, { method: 'OPTIONS', headers });
    assert.equal(response.status, 204);
    assert.equal(corsOf(response)['access-control-allow-methods'], 'GET, HEAD');
  });
});

describe('in a browser', { skip }, () => {
  let browser: Browser;
  before(async () => {
    browser = await launchBrowser();
  });
  after(() => browser?.close());

  /** Fetches from a page of that site: status, ETag and text, or null when the browser blocks it. */
  async function fetchFrom(origin: string, [url, init, cookie]: [string, object, string?]) {
    const context = await browser.newContext();
    if (cookie !== undefined) {
      const [name = '', value = ''] = cookie.split('=');
      await context.addCookies([{ name, value, url: cloud.api, sameSite: 'Lax' }]);
    }
    const page = await context.newPage();
    // A page of the cloud itself whose policy allows requests to its own origin.
    await page.goto(`${origin}/api`);
    const script = async ([address, options]: [string, object]) => {
      try {
        const response = await fetch(address, options);
        return { status: response.status, etag: response.headers.get('etag'), text: await response.text() };
      } catch {
        return null;
      }
    };
    const got = await page.evaluate(script, [url, init] as [string, object]);
    await context.close();
    return got;
  }
  const make = (name: string) => ({
    method: 'POST',
    headers: { 'x-api-key': account.api_key, 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  });

  test('a named site calls with a key, another does not', async () => {
    const made = await fetchFrom(named.origin, [`${cloud.api}/api/buckets`, make('from-named')]);
    assert.equal(made?.status, 201);
    assert.equal(await fetchFrom(stranger.origin, [`${cloud.api}/api/buckets`, make('from-stranger')]), null);
    await user.refused(404, 'bucket_not_found', ['/api/buckets/from-stranger']);
  });

  test('the session is of no use to either', async () => {
    const { username } = account;
    const json = { username, password: 'correct horse battery' };
    const { cookie, 'cloudlet-session': token } = sessionOf(await client.call('/api/login', { json }));
    assert.match(cookie, /=./);
    const init = { credentials: 'include', headers: { 'cloudlet-session': token } };
    assert.equal((await fetchFrom(cloud.api, [`${cloud.api}/api/account`, init, cookie]))?.status, 200);
    for (const { origin } of [named, stranger]) {
      assert.equal(await fetchFrom(origin, [`${cloud.api}/api/account`, init, cookie]), null, origin);
      const post = {
        ...init,
        ...make('by-cookie'),
        headers: { ...init.headers, 'content-type': 'application/json' },
      };
      assert.equal(await fetchFrom(origin, [`${cloud.api}/api/buckets`, post, cookie]), null, origin);
    }
    await user.refused(404, 'bucket_not_found', ['/api/buckets/by-cookie']);
  });

  test('any site reads a link, with its ETag, and parts of it', async () => {
    const whole = await fetchFrom(stranger.origin, [cdn_url, {}]);
    assert.deepEqual(whole, { status: 200, etag: `"${object.etag}"`, text: 'hello world' });
    const part = await fetchFrom(stranger.origin, [
      cdn_url,
      {
        headers: { range: 'bytes=0-4', 'if-match': '*' },
      },
    ]);
    assert.deepEqual([part?.status, part?.text], [206, 'hello']);
  });
});
