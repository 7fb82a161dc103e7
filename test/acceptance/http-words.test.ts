/** The view of a person at a terminal: complete lines, working HEAD, errors that say what to do. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { openSocket, readToEnd } from '../harness/raw-http.ts';
import { sharedCloud } from '../harness/shared-cloud.ts';

let cloud: CloudProcess;
let client: CheckedClient;
let user: CheckedClient;
before(async () => {
  cloud = await sharedCloud();
  client = await CheckedClient.open(cloud.api);
  user = client.as((await client.register()).api_key);
});

describe('JSON ends with a line end', () => {
  /** The text of the answer, which must match its Content-Length, if present. */
  const read = async (path: string, call: Parameters<typeof user.fetch>[1] = {}) => {
    const response = await user.fetch(path, call);
    const text = await response.text();
    const length = response.headers.get('content-length');
    if (length !== null) assert.equal(Number(length), Buffer.byteLength(text), path);
    assert.match(text, /[^\n]\n$/, path);
    return text;
  };

  test('as an answer, a list, an empty list and a problem', async () => {
    assert.match(await read('/api/account'), /}\n$/);
    assert.equal(await read('/api/buckets'), '[]\n');
    await user.expect(201, '/api/buckets', { json: { name: 'lines' } });
    assert.match(await read('/api/buckets'), /}]\n$/);
    assert.match(await read('/api/nothing'), /}\n$/);
  });

  test('as the replay of an answer and of a refusal, which are the same bytes', async () => {
    for (const name of ['lines-once', 'lines']) {
      const call = { json: { name }, headers: { 'idempotency-key': `key-${name}` } };
      const first = await read('/api/buckets', call);
      assert.equal(await read('/api/buckets', call), first);
    }
  });

  test('as the answer to bytes that are no request', async () => {
    const socket = await openSocket(cloud.api);
    socket.write('nonsense\r\n\r\n');
    assert.match(await readToEnd(socket), /}\n$/);
  });
});

describe('HEAD', () => {
  const paths = ['/healthz', '/readyz', '/metrics', '/api/docs', '/api/account', '/api/buckets'];
  for (const path of [...paths, '/api/openapi.json', '/api/billing/ledger', '/api/nothing']) {
    test(`${path} is answered like GET, without the body`, async () => {
      const got = await user.fetch(path);
      await got.text();
      const head = await user.fetch(path, { method: 'HEAD' });
      assert.equal(await head.text(), '');
      assert.equal(head.status, got.status);
      for (const name of ['content-type', 'content-security-policy', 'cache-control'])
        assert.equal(head.headers.get(name), got.headers.get(name), name);
    });
  }

  test('without a key it is refused like GET', async () => {
    assert.equal((await client.fetch('/api/buckets', { method: 'HEAD' })).status, 401);
  });
});

test('an unknown path names the one that was meant', async () => {
  const problem = await user.refused(404, 'not_found', ['/api/bukets/lines/files']);
  assert.equal(problem.hint, 'Did you mean /api/buckets/lines/files?');
});

describe('a wrong request is told what to send instead', () => {
  const post = (path: string, body: string, type?: string) =>
    user.call(path, { method: 'POST', body, headers: type === undefined ? {} : { 'content-type': type } });

  test('the form that curl -d sends where JSON is wanted', async () => {
    const { status, body } = await post(
      '/api/buckets',
      '{"name":"curl"}',
      'application/x-www-form-urlencoded',
    );
    assert.deepEqual([status, body.code], [415, 'unsupported_media_type']);
    assert.match(body.detail, /must be application\/json, not application\/x-www-form-urlencoded/);
    assert.match(body.hint, /-H 'Content-Type: application\/json'/);
  });

  test('JSON where a form is wanted', async () => {
    const { status, body } = await post('/api/buckets/lines/upload', '{}', 'application/json');
    assert.deepEqual([status, body.code], [415, 'unsupported_media_type']);
    assert.match(body.detail, /must be multipart\/form-data with a boundary, not application\/json/);
    assert.match(body.hint, /-F file=@/);
  });

  test('the type of no body at all is not looked at', async () => {
    const { status, body } = await post('/api/vms/vm-x/start', '', 'application/x-www-form-urlencoded');
    assert.deepEqual([status, body.code], [404, 'vm_not_found']);
  });

  test('broken JSON, by line and column', async () => {
    const { status, body } = await post('/api/buckets', '{\n  "name": "a",\n}', 'application/json');
    assert.deepEqual([status, body.code], [400, 'invalid_json']);
    assert.match(body.detail, /at line 3, column 1: a value between the comma and } was expected/);
  });

  test('broken metadata of an upload, by its name', async () => {
    const fields = { metadata: "{'camera':1}" };
    const { status, body } = await user.upload('lines', 'a.txt', 'x', fields);
    assert.equal(status, 400);
    assert.equal(body.errors[0].field, 'metadata');
    assert.match(body.detail, /^metadata: is not valid JSON at line 1, column 2: /);
    assert.doesNotMatch(body.detail, /body/i);
  });

  test('a name with wrong characters, without a regular expression', async () => {
    for (const [path, json] of [
      ['/api/buckets', { name: 'fine', region: 'EU West' }],
      ['/api/register', { username: 'a b', email: 'x', password: 'correct horse' }],
    ] as const) {
      const { errors } = await user.refused(400, 'invalid_request', [path, { json }]);
      for (const { message } of errors) assert.doesNotMatch(message, /\^|\\|\[a-z/i, message);
    }
  });
});

describe('a wrong key', () => {
  const detailFor = async (key: string) =>
    (await client.as(key).refused(401, 'invalid_api_key', ['/api/account'])).detail;

  test('that is mistyped is told so', async () => {
    const key = user.key ?? '';
    const swapped = key.slice(0, 10) + (key[10] === 'a' ? 'b' : 'a') + key.slice(11);
    for (const text of [swapped, key.slice(0, -1), `${key}x`, 'clk_', '"clk_x"'.slice(1)])
      assert.match(await detailFor(text), /^This API key is mistyped: /, text);
  });

  test('that is no key of ours, or of no one, is told no more', async () => {
    // A correct checksum, computed with Python's binascii.crc32.
    for (const text of ['clk_000000000000000000000000000000000HTqEy', 'sk-something-else'])
      assert.equal(await detailFor(text), 'The API key is unknown, expired or revoked', text);
  });
});

describe('what a call does not know', () => {
  const warning = async (path: string, call: Parameters<typeof user.call>[1] = {}) => {
    const { status, headers } = await user.call(path, call);
    assert.ok(status < 300, `${path} ${status}`);
    return headers.get('warning');
  };
  const refused = async (call: Parameters<typeof user.refused>[2]) => {
    const { errors } = await user.refused(400, 'invalid_request', call);
    return errors.map(({ field, message }: { field: string; message: string }) => `${field} ${message}`);
  };

  test('is refused when it looks like a slip of what it knows, together with what else is wrong', async () => {
    const json = { name: 'mistyped', versionning: true, colour: 'red' };
    const slip = 'versionning is not a member of this call; did you mean versioning?';
    assert.deepEqual(await refused(['/api/buckets', { json }]), [slip]);
    assert.deepEqual(await refused(['/api/buckets', { json: { nmae: 'x', encryption: 1 } }]), [
      'name is required',
      'encryption must be true or false',
      'nmae is not a member of this call; did you mean name?',
    ]);
    await user.refused(404, 'bucket_not_found', ['/api/buckets/mistyped']);
    assert.deepEqual(await refused(['/api/buckets?limt=5']), [
      'limt is not a parameter of this call; did you mean limit?',
    ]);
  });

  test('is refused in a form too, and nothing is stored', async () => {
    await user.expect(201, '/api/buckets', { json: { name: 'formed' } });
    const { status, body } = await user.upload('formed', 'a.txt', 'x', { 'storage-class': 'STANDARD' });
    assert.equal(status, 400);
    assert.match(body.detail, /did you mean storage_class\?/);
    assert.deepEqual(await user.expect(200, '/api/buckets/formed/files'), []);
  });

  test('is refused by a download, which would give another version', async () => {
    const { body } = await user.upload('formed', 'b.txt', 'x');
    assert.deepEqual(await refused([`/api/storage/${body.object_id}/download?versionid=x`]), [
      'versionid is not a parameter of this call; did you mean version_id?',
    ]);
  });

  test('is refused by every PATCH, and by calls of administrators, in objects within objects too', async () => {
    const change = (json: object) => ({ method: 'PATCH', json });
    const colour = 'colour is not a member of this call';
    assert.deepEqual(await refused(['/api/buckets/formed', change({ colour: 'red' })]), [colour]);
    const admin = client.as(ADMIN_KEY);
    const wrong = async (path: string, call: object) =>
      (await admin.refused(400, 'invalid_request', [path, call])).errors.map(
        ({ field }: { field: string }) => field,
      );
    const { id } = await user.expect(200, '/api/account');
    assert.deepEqual(await wrong(`/api/admin/accounts/${id}`, change({ password: 'x' })), ['password']);
    const quotas = { max_machines: 1 };
    assert.deepEqual(await wrong('/api/admin/plans/free', change({ quotas })), ['quotas.max_machines']);
    assert.deepEqual(await wrong('/api/admin/accounts?colour=red', {}), ['colour']);
  });

  test('is ignored elsewhere, and told in a Warning header, also when the answer is replayed', async () => {
    const call = { json: { name: 'warned', colour: 'red' }, headers: { 'idempotency-key': 'warned' } };
    for (let time = 0; time < 2; time++)
      assert.equal(await warning('/api/buckets', call), '299 - "Unknown member colour is ignored"');
    assert.match((await warning('/api/buckets?colour=red')) ?? '', /parameter colour is ignored/);
  });

  test('only so many, and never as more than one header line', async () => {
    const strange = ['a"b', 'c\r\nset-cookie: x', 'ü', 'x'.repeat(500), '"', '\\', 'constructor'];
    const json = { name: 'warned-3', ...Object.fromEntries(strange.map((name) => [name, 1])) };
    const given = (await warning('/api/buckets', { json })) ?? '';
    assert.equal(given.match(/299 - "[^"\r\n]{1,140}"/g)?.length, 5, given);
  });

  test('nothing is said of a call that has only what is known', async () => {
    assert.equal(await warning('/api/buckets', { json: { name: 'not-warned', versioning: true } }), null);
    assert.equal(await warning('/api/buckets?limit=5'), null);
  });
});

describe('at the address of the API alone', () => {
  const HTML = { headers: { accept: 'text/html,application/xhtml+xml,*/*;q=0.8' } };
  const get = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(cloud.api + path, init);
    return { response, text: await response.text() };
  };

  test('a browser gets a page that leads on, and nothing of it is loaded from elsewhere', async () => {
    const { response, text } = await get('/api', HTML);
    assert.equal(response.status, 200);
    assert.match(response.headers.get('content-type') ?? '', /^text\/html/);
    assert.equal(response.headers.get('vary'), 'Accept');
    for (const href of ['/api/docs', '/api/openapi.json', '/api/system/status']) {
      assert.ok(text.includes(`href="${href}"`), href);
      assert.equal((await get(href)).response.status, 200);
    }
    assert.ok(text.includes(`${cloud.api}/api/register`), 'commands name this very address');
    assert.doesNotMatch(text, /There is no administrator yet/);
    assert.doesNotMatch(text, /<(?:script|img|iframe)\b|<link (?!rel="icon" href="\/)|https:\/\//);
    assert.match(response.headers.get('content-security-policy') ?? '', /script-src 'none'/);
    assert.equal((await get('/api', { ...HTML, method: 'HEAD' })).text, '');
  });

  test('a program gets an index of paths that exist', async () => {
    for (const path of ['/', '/api']) {
      const index = await client.expect(200, path);
      assert.equal(index.needs_setup, false);
      for (const name of ['docs', 'openapi', 'status'])
        assert.equal((await get(index[name])).response.status, 200);
    }
  });

  test('while there is no administrator it says how to become one', async () => {
    const fresh = await CloudProcess.start({ env: { CLOUDLET_ADMIN_KEY: '' } });
    try {
      assert.match(await (await fetch(`${fresh.api}/api`, HTML)).text(), /There is no administrator yet/);
      assert.equal((await (await CheckedClient.open(fresh.api)).expect(200, '/api')).needs_setup, true);
    } finally {
      await fresh.stop();
    }
  });

  test('a Host is never markup', async () => {
    const { hostname, port } = new URL(cloud.api);
    const socket = await openSocket(cloud.api);
    const host = `${hostname}:${port}"><b>x`;
    socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n`);
    assert.doesNotMatch(await readToEnd(socket), /<b>x/);
  });
});
