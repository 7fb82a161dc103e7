/** Contract §2: every failure is problem details, of any kind and at any stage. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, describe, test } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Call } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { openSocket, parseResponse, sendRaw } from '../harness/raw-http.ts';
import { eventually } from '../harness/waiting.ts';

const cloud = await CloudProcess.start();
after(() => cloud.stop());
const client = await CheckedClient.open(cloud.api);
const user = client.as((await client.register()).api_key);

const asJson = (body: Call['body'], headers = {}): [string, Call] => [
  '/api/buckets',
  { method: 'POST', body, headers: { 'content-type': 'application/json', ...headers } },
];

/** Sends the bytes and checks the returned problem. */
async function refusedRaw(text: string | Uint8Array, status: number, code: string): Promise<void> {
  const answer = parseResponse(await sendRaw(cloud.api, text));
  client.declaration.checkProblem(String(text).slice(0, 80), answer);
  assert.deepEqual([answer.status, answer.body.code], [status, code], String(text).slice(0, 80));
  assert.match(answer.headers.get('x-content-type-options') ?? '', /nosniff/);
}

describe('paths and methods', () => {
  for (const path of [
    '/api/',
    '/api/nothing',
    '/API/buckets',
    '/api//buckets',
    '/api/buckets/',
    '/api/buckets//files',
    '/api/storage/',
    '/api/storage//download',
    '/api/openapiXjson',
  ]) {
    test(`${path} is not there`, async () => {
      await user.refused(404, 'not_found', [path]);
    });
  }

  test('it is counted like any call, and says what is left', async () => {
    const left = async () => {
      const { headers } = await user.call('/api/nothing');
      for (const name of ['ratelimit', 'ratelimit-policy', 'x-ratelimit-limit'])
        assert.ok(headers.get(name), name);
      return Number(headers.get('x-ratelimit-remaining'));
    };
    // One slot is returned every 5 ms: of many simultaneous requests at least two arrive in that time.
    const lefts = await Promise.all(Array.from({ length: 50 }, left));
    assert.ok(Math.min(...lefts) < Math.max(...lefts), `${lefts}`);
  });

  test('an expectation that nobody knows changes nothing', async () => {
    const text = `GET /api/account HTTP/1.1\r\nHost: localhost\r\nX-API-Key: clk_x\r\nExpect: the-unexpected\r\nConnection: close\r\n\r\n`;
    await refusedRaw(text, 401, 'invalid_api_key');
  });

  test('a path that is no URL', async () => {
    await user.refused(400, 'bad_http', ['/api/buckets/%ff%fe']);
    await user.refused(400, 'bad_http', ['/api/buckets/%zz']);
  });

  const wrong: [string, string, string][] = [
    ['DELETE', '/api/buckets', 'POST, GET, HEAD'],
    ['PUT', '/api/buckets/photos', 'GET, HEAD, PATCH, DELETE'],
    ['POST', '/api/storage/obj-x/download', 'GET, HEAD'],
    ['OPTIONS', '/api/buckets', 'POST, GET, HEAD'],
    ['PROPFIND', '/api/account', 'GET, HEAD, PATCH, DELETE'],
    ['HEAD', '/api/register', 'POST'],
  ];
  for (const [method, path, allow] of wrong) {
    test(`${method} ${path}`, async () => {
      const response = await user.fetch(path, { method });
      assert.equal(response.status, 405);
      assert.equal(response.headers.get('allow'), allow);
      assert.match(response.headers.get('content-type') ?? '', /^application\/problem\+json/);
      if (method !== 'HEAD')
        assert.equal(((await response.json()) as { code: string }).code, 'method_not_allowed');
    });
  }

  test('TRACE', async () => {
    const head = 'TRACE /api/buckets HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
    const answer = parseResponse(await sendRaw(cloud.api, head));
    assert.equal(answer.status, 405);
    assert.equal(answer.headers.get('allow'), 'POST, GET, HEAD');
    assert.ok(!JSON.stringify(answer.body).includes('Host: localhost'), 'nothing is echoed');
  });

  test('a method nobody knows', async () => {
    await refusedRaw('FLY /api/buckets HTTP/1.1\r\nHost: localhost\r\n\r\n', 400, 'bad_http');
  });
});

describe('JSON bodies', () => {
  const malformed: Record<string, Call['body']> = {
    'cut off': '{"name":',
    'with a trailing comma': '{"name":"abc",}',
    'with single quotes': "{'name':'abc'}",
    'followed by more': '{"name":"abc"} x',
    'with NaN': '{"name":NaN}',
    'of blanks': '   ',
    'in UTF-16': Buffer.from('{"name":"abc"}', 'utf16le'),
    'with bytes that are no UTF-8': Buffer.from('7b226e616d65223a22fffe227d', 'hex'),
    'nested 65 levels': `${'['.repeat(65)}${']'.repeat(65)}`,
    'nested 16,000 levels': '['.repeat(16_000),
    'with __proto__': '{"name":"abc","__proto__":{"isAdmin":true}}',
    'with an escaped __proto__': '{"name":"abc","__\\u0070roto__":{"isAdmin":true}}',
    'with a nested __proto__': '{"name":"abc","a":[{"__proto__":{}}]}',
  };
  for (const [what, body] of Object.entries(malformed)) {
    test(what, async () => {
      await user.refused(400, 'invalid_json', asJson(body));
    });
  }

  test('with a member that nobody knows is read without it, whatever its name', async () => {
    const names = ['constructor', 'prototype', 'toString', 'colour'];
    const unknown = Object.fromEntries(names.map((name) => [name, { prototype: { is_admin: true } }]));
    const body = await user.expect(201, ...asJson(JSON.stringify({ name: 'unknown-members', ...unknown })));
    for (const name of names) assert.equal(Object.hasOwn(body, name), false, name);
  });

  test('nested 64 levels is only the wrong shape', async () => {
    const body = `${'['.repeat(64)}${']'.repeat(64)}`;
    await user.refused(400, 'invalid_request', asJson(body));
  });

  test('nobody became administrator by a prototype', async () => {
    await user.refused(403, 'admin_required', ['/api/admin/accounts']);
  });

  test('of 16 KiB are read, of more refused with the limit', async () => {
    const fill = (length: number) => {
      const empty = JSON.stringify({ name: 'filled', filler: '' });
      return JSON.stringify({ name: 'filled', filler: 'x'.repeat(length - empty.length) });
    };
    await user.expect(201, ...asJson(fill(16_384)));
    const { detail } = await user.refused(413, 'payload_too_large', asJson(fill(16_385)));
    assert.match(detail, /larger than 16 KiB/);
    await user.refused(413, 'payload_too_large', asJson(fill(8 * 2 ** 20)));
    const length = 50 * 2 ** 30;
    const head = `POST /api/buckets HTTP/1.1\r\nHost: localhost\r\nX-API-Key: ${user.key}\r\n`;
    const declared = `${head}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n{`;
    await refusedRaw(declared, 413, 'payload_too_large');
  });

  test('that come in chunks have the same limit, and public calls too', async () => {
    const head = 'POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
    const chunk = `1000\r\n${' '.repeat(4096)}\r\n`;
    await refusedRaw(`${head}Transfer-Encoding: chunked\r\n\r\n${chunk.repeat(5)}`, 413, 'payload_too_large');
    const json = { username: 'x'.repeat(20_000), email: 'x@example.org', password: 'long enough' };
    await client.refused(413, 'payload_too_large', ['/api/register', { json }]);
  });

  test('that a client cuts off are no fault of ours, in figures and in the log', async () => {
    const head = 'POST /api/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
    const bodies = ['Content-Length: 1000\r\n\r\n{', 'Transfer-Encoding: chunked\r\n\r\nff\r\n{'];
    const counted = async (status: string) => {
      const { body } = await client.call('/metrics');
      const line = new RegExp(
        `^cloudlet_http_requests_total\\{route="login",protocol="rest",status="${status}"\\} (\\d+)$`,
        'm',
      );
      return Number(line.exec(String(body))?.[1] ?? 0);
    };
    const before = await counted('499');
    for (const body of bodies)
      for (const leave of ['resetAndDestroy', 'destroy'] as const) {
        const socket = await openSocket(cloud.api);
        // After 100 Continue the client knows that its head was read.
        socket.write(`${head}Expect: 100-continue\r\n${body}`);
        await once(socket, 'data');
        socket[leave]();
      }
    await eventually('all four', async () => (await counted('499')) === before + 4);
    assert.equal(await counted('500'), 0);
    assert.doesNotMatch(cloud.output, /Internal error/);
  });

  test('may be larger where what is asked for is', async () => {
    const vm = { name: 'vm', instance_type: 'none-such', region: 'us-east-1' };
    const withData = (length: number) => ({ json: { ...vm, user_data: '\n'.repeat(length) } });
    await user.refused(400, 'invalid_request', ['/api/vms', withData(65_536)]);
    const { detail } = await user.refused(413, 'payload_too_large', ['/api/vms', withData(131_072)]);
    assert.match(detail, /larger than 256 KiB/);
    const buckets = Array.from({ length: 100 }, () => ({ name: 'b'.repeat(63), prefix: 'p'.repeat(1024) }));
    const key = { name: 'many', scopes: ['storage:read'], buckets };
    await user.expect(201, '/api/account/access-keys', { json: key });
  });

  test('of another type, or compressed, are refused', async () => {
    const body = '{"name":"typed"}';
    for (const type of ['text/plain', 'application/xml', 'application/x-www-form-urlencoded', 'json'])
      await user.refused(415, 'unsupported_media_type', asJson(body, { 'content-type': type }));
    for (const encoding of ['gzip', 'br', 'deflate'])
      await user.refused(415, 'unsupported_media_type', asJson(body, { 'content-encoding': encoding }));
    const form = new FormData();
    form.set('name', 'typed');
    await user.refused(415, 'unsupported_media_type', ['/api/buckets', { body: form }]);
    const upload = ['/api/buckets/filled/upload', { json: { file: 'x' } }] as [string, Call];
    await user.refused(415, 'unsupported_media_type', upload);
    await user.expect(201, ...asJson(body, { 'content-type': 'Application/JSON; charset=UTF-8' }));
  });

  test('unknown members are ignored and never stored', async () => {
    const json = { name: 'plain', surprise: { a: 1 }, object_count: 7 };
    const bucket = await user.expect(201, '/api/buckets', { json });
    assert.equal(bucket.object_count, 0);
    assert.ok(!('surprise' in (await user.expect(200, '/api/buckets/plain'))));
  });

  test('the types are strict', async () => {
    for (const [field, value] of [
      ['versioning', 'true'],
      ['versioning', 1],
      ['encryption', null],
      ['region', 5],
      ['name', ['abc']],
    ] as const) {
      const json = { name: 'strict', [field]: value };
      const problem = await user.refused(400, 'invalid_request', ['/api/buckets', { json }]);
      assert.equal(problem.errors[0].field, field);
    }
  });
});

describe('HTTP itself', () => {
  const head = 'POST /api/register HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  const malformed: Record<string, string> = {
    'Transfer-Encoding and Content-Length at once': `${head}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n`,
    'two lengths': `${head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x`,
    'a length that is no number': `${head}Content-Length: two\r\n\r\n{}`,
    'a bad chunk size': `${head}Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n`,
    'a chunk without its end': `${head}Transfer-Encoding: chunked\r\n\r\n2\r\n{}xx0\r\n\r\n`,
    'bare line feeds': 'GET /api/account HTTP/1.1\nHost: localhost\n\n',
    'a folded header': 'GET /api/account HTTP/1.1\r\nHost: localhost\r\nX-API-Key: a\r\n b\r\n\r\n',
    'a blank before the colon': 'GET /api/account HTTP/1.1\r\nHost : x\r\n\r\n',
    'no Host': 'GET /api/account HTTP/1.1\r\nConnection: close\r\n\r\n',
    'a NUL in a header': 'GET /api/account HTTP/1.1\r\nHost: localhost\r\nX-API-Key: a\u0000b\r\n\r\n',
    'another protocol': 'SSH-2.0-OpenSSH_9.2\r\n\r\n',
    'a TLS greeting': '\u0016\u0003\u0001\u0002\u0000\u0001\u0000',
  };
  for (const [what, text] of Object.entries(malformed)) {
    test(what, () => refusedRaw(text, 400, 'bad_http'));
  }

  test('TLS: what came is told to who can read it, and to the operator once', async () => {
    for (const base of [cloud.api, cloud.data, cloud.api]) {
      const socket = connectTls({ port: Number(new URL(base).port), host: '127.0.0.1' });
      await assert.rejects(once(socket, 'secureConnect'), { code: 'ERR_SSL_WRONG_VERSION_NUMBER' });
      const greeting = Buffer.from([0x16, 3, 1, 2, 0, 1, 0]);
      const { body } = parseResponse(await sendRaw(base, greeting));
      assert.match(body.detail, /serves HTTP, but was called with https/);
      assert.match(body.hint, /http:\/\/.*deploy\/Caddyfile/);
    }
    const warnings = () => cloud.output.match(/a client calls with https:\/\//g)?.length;
    await eventually('the line', () => warnings() === 1);
  });

  test('headers of more than 16 KiB', async () => {
    await refusedRaw(
      `GET / HTTP/1.1\r\nHost: localhost\r\nX-Fill: ${'x'.repeat(17_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    );
    const many = Array.from({ length: 600 }, (_, i) => `X-${i}: ${'v'.repeat(30)}\r\n`).join('');
    await refusedRaw(`GET / HTTP/1.1\r\nHost: localhost\r\n${many}\r\n`, 431, 'headers_too_large');
  });

  test('after all this the cloud serves as before', async () => {
    await user.expect(200, '/api/account');
    await client.as(ADMIN_KEY).expect(200, '/api/admin/accounts');
    assert.doesNotMatch(cloud.output, /unhandled promise rejection/);
  });
});
