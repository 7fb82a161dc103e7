/** The cloud tests an access key at its own S3 endpoint, and reports the result. */
import assert from 'node:assert/strict';
import { createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { freePort } from '../harness/free-port.ts';

let cloud: CloudProcess;
let anyone: CheckedClient;
let owner: CheckedClient;

before(async () => {
  cloud = await CloudProcess.start();
  anyone = await CheckedClient.open(cloud.api);
  owner = anyone.as((await anyone.register()).api_key);
  await owner.expect(201, '/api/buckets', { json: { name: 'tried' } });
});
after(() => cloud.stop());

interface Step {
  readonly step: string;
  readonly ok: boolean;
  readonly code: string | null;
  readonly message: string;
}

/** Creates a key and tests it. */
async function tried(user: CheckedClient, fields: object, json: object = {}) {
  const body = { name: 'k', scopes: ['storage:*'], ...fields };
  const { id } = await user.expect(201, '/api/account/access-keys', { json: body });
  const result = await user.expect(200, `/api/account/access-keys/${id}/test`, { json });
  return { ...result, found: result.steps.map(({ step, ok }: Step) => `${step} ${ok}`) } as {
    readonly ok: boolean;
    readonly endpoint: string;
    readonly steps: readonly Step[];
    readonly found: readonly string[];
  };
}

test('the endpoint is told to whoever is signed in', async () => {
  const told = await owner.expect(200, '/api/s3');
  assert.deepEqual(told, { endpoint: cloud.data, region: 'us-east-1', domains: [] });
  await anyone.refused(401, 'missing_api_key', ['/api/s3']);
});

test('a key with all rights passes, and nothing is stored', async () => {
  const { ok, endpoint, found } = await tried(owner, {}, { bucket: 'tried' });
  assert.deepEqual(found, [
    'endpoint true',
    'signature true',
    'list_buckets true',
    'read true',
    'write true',
  ]);
  assert.deepEqual([ok, endpoint], [true, cloud.data]);
  assert.deepEqual(await owner.expect(200, '/api/buckets/tried/files'), []);
  assert.equal((await tried(owner, {})).found.length, 3);
});

test('a key with few rights is told what it may do, and passes', async () => {
  const reader = await tried(owner, { scopes: ['storage:read'] }, { bucket: 'tried' });
  assert.equal(reader.ok, true);
  assert.match(reader.steps.at(-1)?.message ?? '', /not allowed/);
  const limited = { scopes: ['storage:append'], buckets: [{ name: 'tried', prefix: 'in/' }] };
  const { ok, steps } = await tried(owner, limited);
  assert.equal(ok, true);
  assert.deepEqual(
    steps.map(({ message }) => /not allowed/.test(message)),
    [false, false, true, true, false],
  );
  assert.equal((await tried(owner, { scopes: ['compute:*'] }, { bucket: 'tried' })).ok, true);
});

test('a bucket that is not there fails, and says so', async () => {
  const { ok, steps } = await tried(owner, {}, { bucket: 'nowhere' });
  assert.equal(ok, false);
  assert.deepEqual(
    steps.filter((step) => !step.ok).map(({ step, code }) => `${step} ${code}`),
    ['read NoSuchBucket', 'write NoSuchBucket'],
  );
  const beyond = await tried(owner, { buckets: [{ name: 'tried' }] }, { bucket: 'nowhere' });
  assert.equal(beyond.ok, true);
  assert.match(beyond.steps.at(-1)?.message ?? '', /not allowed/);
});

test('an expired key is named, and nobody tries the key of another', async () => {
  const json = { name: 'brief', scopes: ['storage:*'], expires_in: 1 };
  const { id } = await owner.expect(201, '/api/account/access-keys', { json });
  await new Promise((resolve) => setTimeout(resolve, 1100));
  const path = `/api/account/access-keys/${id}/test`;
  const result = await owner.expect(200, path, { json: {} });
  assert.deepEqual([result.ok, result.steps[0].code], [false, 'InvalidAccessKeyId']);
  const stranger = anyone.as((await anyone.register()).api_key);
  await stranger.refused(404, 'access_key_not_found', [path, { json: {} }]);
});

test('what stands between is found: nothing, another server, a proxy that changes the host', async (t) => {
  let target = '';
  const proxy = createServer((request, response) => {
    const isOther = target === '';
    if (isOther) return void response.end('a wiki');
    const { hostname, port } = new URL(target);
    const headers = { ...request.headers, host: `${hostname}:${port}` };
    const { method, url } = request;
    request.pipe(
      forward({ hostname, port, method, path: url, headers }, (reply) => {
        response.writeHead(reply.statusCode ?? 502, reply.headers);
        reply.pipe(response);
      }),
    );
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  t.after(() => proxy.close());
  t.after(() => proxy.closeAllConnections());
  const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const port = await freePort();
  const env = { CLOUDLET_DATA_URL: url, CLOUDLET_DATA_PORT: String(port) };
  const behind = await CloudProcess.start({ env });
  t.after(() => behind.stop());
  const open = await CheckedClient.open(behind.api);
  const user = open.as((await open.register()).api_key);
  assert.deepEqual((await tried(user, {})).found, ['endpoint false']);
  target = `http://127.0.0.1:${port}`;
  const changed = await tried(user, {});
  assert.deepEqual(changed.found, ['endpoint true', 'signature false']);
  assert.equal(changed.steps.at(-1)?.code, 'SignatureDoesNotMatch');
  proxy.closeAllConnections();
  await new Promise((resolve) => proxy.close(resolve));
  const gone = await tried(user, {});
  assert.deepEqual([gone.found, gone.steps[0]?.code], [['endpoint false'], 'ECONNREFUSED']);
});
