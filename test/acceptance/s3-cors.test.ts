/** Scripts of other origins, as allowed by the rules of a bucket: preflights, and the headers of answers. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client } from '../harness/client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { assertRefused, newS3, pathOf, type S3Client, type S3Reply, textOf, transmit } from './s3-kit.ts';

const BUCKET = 'shared-with-scripts';
const KEY = 'a/b.txt';
const DOMAIN = 's3.localhost';
const query = 'cors';
const APP = 'https://app.example.com';

let cloud: CloudProcess;
let s3: S3Client;
let another: Client;
let other: S3Client;

before(async () => {
  cloud = await CloudProcess.start({ env: { CLOUDLET_S3_DOMAIN: DOMAIN } });
  s3 = await newS3(cloud.data, await new Client(cloud.api).newUser());
  another = await new Client(cloud.api).newUser();
  other = await newS3(cloud.data, another);
  await s3.ok('PUT', `/${BUCKET}`);
  await s3.ok('PUT', pathOf(BUCKET, KEY), { body: 'for scripts' });
});
after(() => cloud.stop());

const rule = (xml: string) => `<CORSRule>${xml}</CORSRule>`;
const config = (...rules: string[]) => `<CORSConfiguration>${rules.map(rule).join('')}</CORSConfiguration>`;
const origin = (name: string) => `<AllowedOrigin>${name}</AllowedOrigin>`;
const method = (name: string) => `<AllowedMethod>${name}</AllowedMethod>`;
const header = (name: string) => `<AllowedHeader>${name}</AllowedHeader>`;

const put = (client: S3Client, body: string) => client.ok('PUT', `/${BUCKET}`, { query, body });

/** A request without a signature. */
function unsigned(verb: string, target: string, headers: Record<string, string>): Promise<S3Reply> {
  const host = new URL(cloud.data).host;
  return transmit(cloud.data, { method: verb, target, headers: { host, ...headers }, body: Buffer.alloc(0) });
}

function preflight(
  from: string,
  verb: string,
  { headers = '', target = pathOf(BUCKET, KEY) }: { headers?: string; target?: string } = {},
): Promise<S3Reply> {
  return unsigned('OPTIONS', target, {
    origin: from,
    'access-control-request-method': verb,
    ...(headers !== '' && { 'access-control-request-headers': headers }),
  });
}

/** The CORS headers of an answer, without their prefix. */
function corsOf({ headers }: S3Reply): Record<string, unknown> {
  const named = Object.entries(headers).filter(([name]) => name.startsWith('access-control-'));
  return Object.fromEntries(named.map(([name, value]) => [name.replace(/^access-control-/, ''), value]));
}

const VARY = 'Origin, Access-Control-Request-Headers, Access-Control-Request-Method';

describe('the rules of a bucket', () => {
  test('are put, read and removed', async () => {
    await s3.refused(404, 'NoSuchCORSConfiguration', ['GET', `/${BUCKET}`, { query }]);
    const full =
      `<ID>web &amp; app</ID>${header('*')}${header('x-amz-*')}${method('GET')}${method('PUT')}` +
      `${origin(APP)}${origin('http://*.example.org')}<ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>3000</MaxAgeSeconds>`;
    await put(s3, config(full, method('DELETE') + origin('*')));
    const { text } = await s3.ok('GET', `/${BUCKET}`, { query });
    assert.match(text, /^<\?xml.*\n<CORSConfiguration xmlns="http:\/\/s3.amazonaws.com\/doc\/2006-03-01\/">/);
    assert.ok(text.includes(rule(full)), text);
    assert.ok(text.includes(rule(method('DELETE') + origin('*'))), text);
    assert.equal((await s3.ok('DELETE', `/${BUCKET}`, { query })).status, 204);
    assert.equal((await s3.ok('DELETE', `/${BUCKET}`, { query })).status, 204);
    await s3.refused(404, 'NoSuchCORSConfiguration', ['GET', `/${BUCKET}`, { query }]);
  });

  test('are refused where AWS refuses them', async () => {
    const good = method('GET') + origin('*');
    const long = 'i'.repeat(256);
    for (const [code, body] of [
      ['MissingRequestBodyError', ''],
      ['MalformedXML', '<CORSConfiguration/>'],
      ['MalformedXML', config(method('GET'))],
      ['MalformedXML', config(origin('*'))],
      ['MalformedXML', config(`${good}<MaxAgeSeconds>soon</MaxAgeSeconds>`)],
      ['MalformedXML', `<Rules>${rule(good)}</Rules>`],
      ['InvalidRequest', config(method('PATCH') + origin('*'))],
      ['InvalidRequest', config(method('get') + origin('*'))],
      ['InvalidRequest', config(method('GET') + origin('http://*.*.example'))],
      ['InvalidRequest', config(good + header('x-*-*'))],
      ['InvalidRequest', config(`${good}<ExposeHeader>x-*</ExposeHeader>`)],
      ['InvalidRequest', config(...Array.from({ length: 101 }, () => good))],
      ['InvalidArgument', config(`${good}<ID>${long}</ID>`)],
    ] as const) {
      await s3.refused(400, code, ['PUT', `/${BUCKET}`, { query, body }]);
    }
    await s3.refused(404, 'NoSuchCORSConfiguration', ['GET', `/${BUCKET}`, { query }]);
    await put(s3, config(...Array.from({ length: 100 }, () => good)));
    await s3.ok('DELETE', `/${BUCKET}`, { query });
    await other.refused(403, 'AccessDenied', ['PUT', `/${BUCKET}`, { query, body: config(good) }]);
  });
});

describe('a preflight', () => {
  test('without rules, or of a bucket that there is not, is refused', async () => {
    for (const target of [pathOf(BUCKET, KEY), `/${BUCKET}`, '/no-such-bucket/a']) {
      const reply = await preflight(APP, 'GET', { target });
      assertRefused(reply, 403, 'AccessForbidden');
      assert.match(reply.text, /CORS is not enabled for this bucket/);
      assert.equal(textOf(reply.text, 'Method'), 'GET');
      assert.equal(textOf(reply.text, 'ResourceType'), target === `/${BUCKET}` ? 'BUCKET' : 'OBJECT');
      assert.deepEqual(corsOf(reply), {});
    }
  });

  test('that lacks what it must say is a bad request', async () => {
    const target = pathOf(BUCKET, KEY);
    assertRefused(await unsigned('OPTIONS', target, {}), 400, 'BadRequest');
    assertRefused(await unsigned('OPTIONS', target, { origin: APP }), 400, 'BadRequest');
    assertRefused(await preflight(APP, 'PATCH'), 400, 'BadRequest');
  });

  test('is answered by the first rule that matches, without a key', async () => {
    await put(
      s3,
      config(
        `${method('PUT')}${method('GET')}${origin(APP)}${header('x-amz-*')}${header('Content-Type')}<ExposeHeader>ETag</ExposeHeader><ExposeHeader>x-amz-version-id</ExposeHeader><MaxAgeSeconds>60</MaxAgeSeconds>`,
        method('DELETE') + origin('http://*.example.org'),
        method('HEAD') + origin('*') + header('*'),
      ),
    );
    const asked = await preflight(APP, 'PUT', { headers: 'X-Amz-Date,  content-type' });
    assert.deepEqual([asked.status, asked.text], [200, '']);
    assert.deepEqual(corsOf(asked), {
      'allow-origin': APP,
      'allow-methods': 'PUT, GET',
      'allow-headers': 'x-amz-date, content-type',
      'allow-credentials': 'true',
      'expose-headers': 'ETag, x-amz-version-id',
      'max-age': '60',
    });
    assert.equal(asked.headers.vary, VARY);
    const wild = await preflight('http://a.example.org', 'DELETE', { target: `/${BUCKET}` });
    assert.deepEqual(corsOf(wild), {
      'allow-origin': 'http://a.example.org',
      'allow-methods': 'DELETE',
      'allow-credentials': 'true',
    });
    const open = await preflight('null', 'HEAD', { headers: 'anything' });
    assert.deepEqual(corsOf(open), {
      'allow-origin': '*',
      'allow-methods': 'HEAD',
      'allow-headers': 'anything',
    });
  });

  test('of a stranger’s origin is refused, and of one that wants more', async () => {
    for (const [from, verb, headers] of [
      ['https://evil.example', 'GET', ''],
      [`${APP}.evil.example`, 'PUT', ''],
      ['https://app.example.com:8443', 'PUT', ''],
      ['http://example.org', 'DELETE', ''],
      [APP, 'DELETE', ''],
      [APP, 'PUT', 'x-secret'],
      ['http://a.example.org', 'DELETE', 'x-amz-date'],
    ] as const) {
      const reply = await preflight(from, verb, { headers });
      assertRefused(reply, 403, 'AccessForbidden');
      assert.deepEqual(corsOf(reply), {}, from);
      assert.equal(reply.headers.vary, VARY);
    }
  });

  test('reaches the bucket of a presigned URL’s account', async () => {
    // Its own bucket of that name has priority over the shared one.
    assert.equal((await another.call('/api/buckets', { json: { name: BUCKET } })).status, 201);
    await put(other, config(method('PUT') + origin('https://other.example')));
    const { target } = other.prepare('PUT', pathOf(BUCKET, 'mine'), { presigned: 60 });
    assert.equal((await preflight('https://other.example', 'PUT', { target })).status, 200);
    assert.equal((await preflight(APP, 'PUT', { target })).status, 403);
    assert.equal((await preflight(APP, 'PUT')).status, 200);
    await other.ok('DELETE', `/${BUCKET}`);
  });

  test('by the host name of a bucket', async () => {
    const host = `${BUCKET}.${DOMAIN}:${new URL(cloud.data).port}`;
    const asking = { host, origin: APP, 'access-control-request-method': 'GET' };
    for (const target of [`/${KEY}`, '/', '/cdn/x']) {
      const reply = await unsigned('OPTIONS', target, asking);
      assert.deepEqual([reply.status, corsOf(reply)['allow-origin']], [200, APP], target);
    }
  });

  test('of a link is not answered by a bucket', async () => {
    const reply = await preflight('https://evil.example', 'GET', { target: '/cdn/obj-x/a.txt' });
    assert.deepEqual([reply.status, corsOf(reply)['allow-methods']], [204, 'GET, HEAD']);
  });
});

describe('an answer', () => {
  test('carries the headers of the rule, refusals too', async () => {
    for (const [verb, path, status] of [
      ['GET', pathOf(BUCKET, KEY), 200],
      ['GET', `/${BUCKET}`, 200],
      ['GET', pathOf(BUCKET, 'missing'), 404],
    ] as const) {
      const reply = await s3.call(verb, path, { headers: { origin: APP } });
      assert.equal(reply.status, status);
      assert.deepEqual(corsOf(reply), {
        'allow-origin': APP,
        'allow-methods': 'PUT, GET',
        'allow-credentials': 'true',
        'expose-headers': 'ETag, x-amz-version-id',
        'max-age': '60',
      });
      assert.equal(reply.headers.vary, VARY);
    }
    const refused = await unsigned('GET', pathOf(BUCKET, KEY), {
      origin: APP,
      'x-amz-content-sha256': 'UNSIGNED-PAYLOAD',
    });
    assert.deepEqual([refused.status, corsOf(refused)['allow-origin']], [403, APP]);
  });

  test('carries none for others, for other methods, and without an Origin', async () => {
    const path = pathOf(BUCKET, KEY);
    for (const headers of [{ origin: 'https://evil.example' }, {}] as Record<string, string>[]) {
      assert.deepEqual(corsOf(await s3.ok('GET', path, { headers })), {});
    }
    const named = { origin: APP, 'access-control-request-method': 'DELETE' };
    assert.deepEqual(corsOf(await s3.ok('GET', path, { headers: named })), {});
    assert.deepEqual(corsOf(await s3.call('DELETE', pathOf(BUCKET, 'x'), { headers: { origin: APP } })), {});
    assert.deepEqual(corsOf(await other.call('GET', '/', { headers: { origin: APP } })), {});
  });
});
