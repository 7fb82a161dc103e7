/** Tests every operation of a running cloud's openapi.json with each kind of wrong credential. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient, type Entry } from '../harness/checked-client.ts';
import type { Call } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { CASES } from './permission-cases.ts';
import { PUBLIC } from './public-operations.ts';

/** The owner's resources, by the start of the path. */
interface Property {
  readonly bucket: string;
  readonly object: string;
  readonly accessKey: string;
  readonly session: string;
  readonly account: number;
  readonly vm: string;
  readonly database: string;
  readonly webhook: string;
  readonly delivery: string;
  readonly operation: string;
}

const cloud = await CloudProcess.start();
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);
const entries = anyone.declaration.operations;
const isForAdmins = (permission: string) => permission === 'admin' || permission === 'admin:read';
const guarded = entries.filter(({ operation }) => operation['x-permission'] !== 'public');
const admin = anyone.as(ADMIN_KEY);
const POST = { method: 'POST' };
let owned: Property;

async function newAuditor() {
  const { id, api_key } = await anyone.register();
  await admin.expect(200, `/api/admin/accounts/${id}`, { method: 'PATCH', json: { is_auditor: true } });
  return { id, api_key, auditor: anyone.as(api_key) };
}

before(async () => {
  const account = await anyone.register();
  const owner = anyone.as(account.api_key);
  await owner.expect(201, '/api/buckets', { json: { name: 'owned-bucket' } });
  const { body } = await owner.upload('owned-bucket', 'a.txt', 'mine');
  const json = { name: 'k', scopes: ['storage:read'] };
  const key = await owner.expect(201, '/api/account/access-keys', { json });
  const login = { username: account.username, password: 'correct horse battery' };
  await owner.expect(200, '/api/login', { json: login });
  const [session] = await owner.expect(200, '/api/account/sessions');
  const vm = await owner.expect(201, '/api/vms', { json: { name: 'mine', instance_type: 't2.micro' } });
  const database = await owner.expect(201, '/api/databases', { json: { name: 'mine' } });
  const hook = { json: { url: 'https://hooks.invalid/hook' } };
  const webhook = await owner.expect(201, '/api/webhooks', hook);
  const delivery = await owner.expect(201, `/api/webhooks/${webhook.id}/test`, { method: 'POST' });
  const later = { method: 'POST', headers: { prefer: 'respond-async' } };
  const { operation_id } = await owner.expect(202, `/api/vms/${vm.vm_id}/console-tickets`, later);
  owned = {
    bucket: 'owned-bucket',
    object: body.object_id,
    accessKey: key.id,
    session: session.id,
    account: account.id,
    vm: vm.vm_id,
    database: database.database_id,
    webhook: webhook.id,
    delivery: delivery.id,
    operation: operation_id,
  };
});

/** The resource of `{id}`, by the start of the path; elsewhere an access key. */
const IDS: Readonly<Record<string, keyof Property>> = {
  '/api/admin/': 'account',
  '/api/operations/': 'operation',
  '/api/account/sessions/': 'session',
  '/api/storage/': 'object',
  '/api/webhooks/': 'webhook',
};

/** The call with the owner's ids in the path. */
function callOf({ method, path, operation }: Entry): [string, Call] {
  const prefix = Object.keys(IDS).find((start) => path.startsWith(start)) ?? '';
  const id = String(owned[IDS[prefix] ?? 'accessKey']);
  const url = path
    .replace('{name}', owned.bucket)
    .replace('{id}', id)
    .replace('{vm_id}', owned.vm)
    .replace('{database_id}', owned.database)
    .replace('{delivery_id}', owned.delivery)
    .replace('{number}', '1');
  const { json, form, query = '' } = CASES[operation.operationId] ?? {};
  if (!form) return [url + query, { method, json }];
  const body = new FormData();
  body.set('file', new Blob(['x']), 'x.txt');
  return [url + query, { method, body }];
}

/** A problem without the requested names. */
function worded(problem: object, names: readonly string[]): string {
  const text = JSON.stringify({ ...problem, request_id: '' });
  return names.reduce((rest, name) => rest.replaceAll(name, '…'), text);
}

test('every operation is a case here, and every case is an operation', () => {
  const names = entries.map(({ operation }) => operation.operationId);
  const known = [...Object.keys(PUBLIC), ...Object.keys(CASES)];
  assert.deepEqual([...names].sort(), known.sort());
  for (const { operation } of guarded) assert.ok(operation.operationId in CASES, operation.operationId);
  // Each operation that names a resource of an account is tested by another account.
  const untried = guarded.filter(
    ({ path, operation: { operationId, 'x-permission': permission } }) =>
      path.includes('{') && !isForAdmins(permission) && CASES[operationId]?.foreign === undefined,
  );
  assert.deepEqual(untried, []);
});

test('public operations ask for no key', async () => {
  for (const { method, path, operation } of entries) {
    if (operation['x-permission'] !== 'public') continue;
    const call = operation.requestBody ? { method, json: {} } : { method };
    const { status, body } = await anyone.call(path, call);
    assert.notEqual(body.code, 'missing_api_key', `${path} → ${status}`);
    assert.ok(status === 200 || (status === 400 && operation.requestBody), `${path} → ${status}`);
  }
});

describe('without a key', () => {
  for (const entry of guarded) {
    test(`${entry.method} ${entry.path}`, async () => {
      await anyone.refused(401, 'missing_api_key', callOf(entry));
    });
  }
});

describe('with a key that is none', () => {
  const garbage = [
    '',
    'x',
    `clk_${'A'.repeat(38)}`,
    'clk_é',
    `${ADMIN_KEY}x`,
    'a'.repeat(5000),
    "' OR 1=1 --",
  ];
  for (const entry of guarded) {
    test(`${entry.method} ${entry.path}`, async () => {
      const [url, call] = callOf(entry);
      for (const key of garbage) {
        const { status, body, headers } = await anyone.as(key).call(url, call);
        assert.equal(status, 401, key);
        assert.equal(body.code, 'invalid_api_key', key);
        assert.match(headers.get('www-authenticate') ?? '', /^Bearer /);
      }
    });
  }
});

describe('with the key of a plain user', () => {
  test('operations of administrators are refused', async () => {
    const user = anyone.as((await anyone.register()).api_key);
    const operations = entries.filter(({ operation }) => isForAdmins(operation['x-permission']));
    assert.ok(operations.length >= 60);
    for (const entry of operations) await user.refused(403, 'admin_required', callOf(entry));
  });

  test('what another account owns is not there, in the same words as what never was', async () => {
    const stranger = anyone.as((await anyone.register()).api_key);
    const foreign = guarded.filter(({ operation }) => CASES[operation.operationId]?.foreign);
    assert.ok(foreign.length >= 9);
    const other = (id: string) => id.replace(/.$/, (last) => (last === 'a' ? 'b' : 'a'));
    const absent = {
      [owned.bucket]: 'never-was-here',
      [owned.object]: other(owned.object),
      [owned.accessKey]: other(owned.accessKey),
      [owned.vm]: other(owned.vm),
      [owned.webhook]: other(owned.webhook),
      [owned.operation]: other(owned.operation),
    };
    for (const entry of foreign) {
      const [url, call] = callOf(entry);
      const code = CASES[entry.operation.operationId]?.foreign ?? '';
      const theirs = await stranger.refused(404, code, [url, call]);
      const missing = Object.entries(absent).reduce((path, [from, to]) => path.replace(from, to), url);
      const none = await stranger.refused(404, code, [missing, callOf(entry)[1]]);
      assert.equal(worded(theirs, Object.keys(absent)), worded(none, Object.values(absent)), url);
    }
  });
});

describe('with an access key', () => {
  const SCOPES = [
    'account:read',
    'account:write',
    'storage:read',
    'storage:write',
    'storage:append',
    'storage:admin',
    'billing:read',
    'webhooks:read',
    'webhooks:write',
  ];

  test('an operation whose scope is not granted is refused, and only the scope is the reason', async () => {
    const account = await anyone.register();
    const owner = anyone.as(account.api_key);
    for (const entry of guarded) {
      const permission = entry.operation['x-permission'];
      if (permission === 'authenticated') continue;
      // A key that may write may append.
      const granting = permission === 'storage:append' ? [permission, 'storage:write'] : [permission];
      const others = isForAdmins(permission)
        ? ['storage:*']
        : SCOPES.filter((scope) => !granting.includes(scope));
      const json = { name: 'lacks one', scopes: others };
      const { id, api_key } = await owner.expect(201, '/api/account/access-keys', { json });
      const code = isForAdmins(permission) ? 'admin_required' : 'scope_required';
      await anyone.as(api_key).refused(403, code, callOf(entry));
      await owner.expect(200, `/api/account/access-keys/${id}`, { method: 'DELETE' });
    }
  });

  test("an administrator's limited key is no administrator's key", async () => {
    const json = { name: 'limited', scopes: ['account:*', 'storage:*', 'compute:*', 'billing:*'] };
    const { api_key } = await admin.expect(201, '/api/account/access-keys', { json });
    for (const entry of entries) {
      if (!isForAdmins(entry.operation['x-permission'])) continue;
      await anyone.as(api_key).refused(403, 'admin_required', callOf(entry));
    }
  });
});

describe('an auditor', () => {
  const MAY = new Set([
    ...['account:read', 'account:write', 'storage:read', 'compute:read', 'databases:read'],
    ...['billing:read', 'webhooks:read', 'admin:read', 'authenticated'],
  ]);
  const FOREIGN = new Set(Object.values(CASES).flatMap(({ foreign }) => foreign ?? []));
  /** It ends something that the test still needs. */
  const LEFT_OUT = new Set(['closeAccount', 'watchUpdates']);

  test('reads what an administrator reads, and is refused everything else', async () => {
    const { auditor, api_key } = await newAuditor();
    for (const entry of guarded) {
      const { operationId, 'x-permission': permission } = entry.operation;
      if (LEFT_OUT.has(operationId)) continue;
      const [url, call] = callOf(entry);
      if (!MAY.has(permission)) {
        const code = permission === 'admin' ? 'admin_required' : 'scope_required';
        const { detail } = await auditor.refused(403, code, [url, call]);
        if (code === 'scope_required') assert.match(detail, /auditor/, operationId);
      } else if (permission === 'admin:read') {
        const own = await auditor.call(url, call);
        assert.equal(own.status, (await admin.call(url, call)).status, `${operationId}: ${own.status}`);
      } else if (entry.method === 'GET') {
        const { status, body } = await auditor.call(url, call);
        assert.ok(status === 200 || (status === 404 && FOREIGN.has(body.code)), `${operationId}: ${status}`);
      }
    }
    await auditor.refused(403, 'admin_required', [`/api/admin/accounts/${owned.account}/api-key`, POST]);
    const log = await auditor.expect(200, '/api/audit?account_id=all&limit=1000');
    assert.ok(log.some(({ account_id: id }: { account_id: number }) => id === owned.account));
    assert.equal((await auditor.expect(200, '/api/account')).is_auditor, true);
    await anyone.as(api_key).refused(403, 'scope_required', ['/api/buckets', { json: { name: 'a-bucket' } }]);
  });

  test('has limited keys that read no more than themselves, and whole ones that change nothing', async () => {
    const { auditor } = await newAuditor();
    const made = async (scopes: readonly string[]) => {
      const json = { name: 'k', scopes };
      return anyone.as((await auditor.expect(201, '/api/account/access-keys', { json })).api_key);
    };
    const limited = await made(['account:read', 'storage:*']);
    await limited.refused(403, 'admin_required', ['/api/admin/accounts']);
    await limited.refused(403, 'admin_required', ['/api/audit?account_id=all']);
    await limited.refused(403, 'scope_required', ['/api/buckets', { json: { name: 'a-bucket' } }]);
    const whole = await made(['*']);
    await whole.expect(200, '/api/admin/accounts');
    await whole.refused(403, 'scope_required', ['/api/vms', { json: { name: 'm' } }]);
  });

  test('is one from the next call on, and no longer from the one after', async () => {
    const { auditor, id } = await newAuditor();
    const url = `/api/admin/accounts/${id}`;
    const both = { method: 'PATCH', json: { is_admin: true } };
    await admin.refused(400, 'invalid_request', [url, both]);
    await admin.expect(200, url, { method: 'PATCH', json: { is_auditor: false } });
    await auditor.refused(403, 'admin_required', ['/api/admin/accounts']);
    await auditor.expect(201, '/api/buckets', { json: { name: 'of-a-user-again' } });
    await admin.expect(200, url, both);
    await admin.refused(400, 'invalid_request', [url, { method: 'PATCH', json: { is_auditor: true } }]);
    const json = { is_admin: false, is_auditor: true };
    await admin.expect(200, url, { method: 'PATCH', json });
    await auditor.refused(403, 'admin_required', [url, { method: 'PATCH', json: { is_admin: true } }]);
  });
});

test('an administrator is refused nothing for lack of a right', async () => {
  for (const entry of guarded) {
    const { method, operation } = entry;
    if (['closeAccount', 'watchUpdates', 'rotateMasterKey'].includes(operation.operationId)) continue;
    const url = entry.path.replaceAll(/\{\w+\}/g, 'nothing');
    const headers = { 'content-type': 'application/json' };
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: '[' };
    const answer = await admin.fetch(url, { method, headers, ...body });
    await answer.body?.cancel();
    assert.ok(![401, 403].includes(answer.status), `${operation.operationId}: ${answer.status}`);
  }
});

test('an expired account is refused everywhere', { timeout: 300_000 }, async () => {
  const account = await anyone.register();
  const url = `/api/admin/accounts/${account.id}`;
  const json = { expires_at: new Date(Date.now() + 2000).toISOString() };
  await admin.expect(200, url, { method: 'PATCH', json });
  // The job that suspends accounts runs once a minute.
  for (let state = null; state === null; ) {
    await sleep(500);
    state = (await admin.expect(200, url)).suspended_reason;
  }
  for (const entry of guarded) {
    const problem = await anyone.as(account.api_key).refused(403, 'account_suspended', callOf(entry));
    assert.match(problem.detail, /expired/);
  }
});

test('a suspended account is refused everywhere, its access keys too, and none of it was lost', async () => {
  const account = await anyone.register();
  const user = anyone.as(account.api_key);
  const json = { name: 'k', scopes: ['*'] };
  const { api_key } = await user.expect(201, '/api/account/access-keys', { json });
  await admin.expect(200, `/api/admin/accounts/${account.id}/suspend`, { json: { reason: 'test' } });
  for (const entry of guarded) {
    await user.refused(403, 'account_suspended', callOf(entry));
    await anyone.as(api_key).refused(403, 'account_suspended', callOf(entry));
  }
  await admin.expect(200, `/api/admin/accounts/${account.id}/resume`, { method: 'POST' });
  assert.equal((await user.expect(200, '/api/account')).is_active, true);
  assert.equal((await anyone.as(api_key).expect(200, '/api/account')).username, account.username);
});

test('after all these refusals the owner has what was there before', async () => {
  const accounts = await admin.expect(200, '/api/admin/accounts');
  const owner = accounts.find(({ id }: { id: number }) => id === owned.account);
  assert.equal(owner.credits, 10);
  assert.equal(owner.is_active, true);
  const { api_key } = await admin.expect(200, `/api/admin/accounts/${owned.account}/api-key`, {
    method: 'POST',
  });
  const user = anyone.as(api_key);
  const [bucket] = await user.expect(200, '/api/buckets');
  assert.deepEqual([bucket.name, bucket.object_count, bucket.versioning], ['owned-bucket', 1, false]);
  assert.equal((await user.expect(200, '/api/account/access-keys')).length, 1);
  assert.equal(String(await user.download(owned.object)), 'mine');
});
