/** Walks every operation of a running cloud's openapi.json with the wrong credential of every kind. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CheckedClient, type Entry } from '../harness/checked-client.ts';
import type { Call } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { ADMIN_OPERATIONS } from './admin-operations.ts';
import { PUBLIC } from './public-operations.ts';
import { RECOVERY_OPERATIONS } from './recovery-operations.ts';
import { STORAGE_OPERATIONS } from './storage-operations.ts';

interface Case {
  /** A body the operation would accept, so that only the credential can be what is refused. */
  readonly json?: unknown;
  readonly form?: boolean;
  /** With the ids of another account: the code of the 404. Absent: the path names nothing of an account. */
  readonly foreign?: string;
}

const SSH_KEY = `ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`;

/** Every operation that needs a credential. A new route must be added here by hand. */
const CASES: Readonly<Record<string, Case>> = {
  getAccount: {},
  listAudit: {},
  getProfile: {},
  updateAccount: { json: {} },
  closeAccount: {},
  confirmPassword: { json: { current_password: 'not this' } },
  rotateApiKey: { json: {} },
  getRights: {},
  requestEmailConfirmation: {},
  listAccessKeys: {},
  createAccessKey: { json: { name: 'k', scopes: ['storage:read'] } },
  deleteAccessKey: { foreign: 'access_key_not_found' },
  approveLogin: {
    json: {
      redirect_uri: 'http://127.0.0.1:1/callback',
      code_challenge: 'x'.repeat(43),
      code_challenge_method: 'S256',
      name: 'n',
      scopes: ['storage:read'],
    },
  },
  findDeviceLogin: { json: { user_code: 'BBBB-BBBB' } },
  decideDeviceLogin: { json: { user_code: 'BBBB-BBBB', approve: false } },
  listSessions: {},
  endSession: { foreign: 'session_not_found' },
  endOtherSessions: {},
  createTicket: { json: { path: '/api/account' } },
  ...STORAGE_OPERATIONS,
  ...ADMIN_OPERATIONS,
  adminListPlans: {},
  adminCreatePlan: { json: { name: 'plan' } },
  adminChangePlan: { json: {} },
  adminDeletePlan: {},
  getQuotas: {},
  listImages: {},
  adminListImages: {},
  adminListVms: {},
  adminStopVm: {},
  adminDeleteVm: {},
  adminAddImage: { json: { name: 'i', url: 'http://127.0.0.1/' } },
  adminUploadImage: { form: true },
  adminDeleteImage: {},
  getS3Endpoint: {},
  testAccessKey: { json: {}, foreign: 'access_key_not_found' },
  listUploads: { foreign: 'bucket_not_found' },
  abortUpload: { foreign: 'bucket_not_found' },
  getBucketSettings: { foreign: 'bucket_not_found' },
  getBucketAccess: { foreign: 'bucket_not_found' },
  previewBucketLifecycle: {
    json: { lifecycle: [{ enabled: true, days: 1 }] },
    foreign: 'bucket_not_found',
  },
  changeBucketSettings: { json: { tags: { a: 'b' } }, foreign: 'bucket_not_found' },
  createDatabase: { json: { name: 'd' } },
  listDatabases: {},
  getDatabase: { foreign: 'database_not_found' },
  changeDatabase: { json: { name: 'e' }, foreign: 'database_not_found' },
  deleteDatabase: { foreign: 'database_not_found' },
  undeleteDatabase: { json: {}, foreign: 'database_not_found' },
  listTestDatabases: { foreign: 'database_not_found' },
  getDatabaseCredentials: { foreign: 'database_not_found' },
  rotateDatabaseCredentials: { foreign: 'database_not_found' },
  restartDatabase: { foreign: 'database_not_found' },
  queryDatabase: { json: { statement: 'SELECT 1' }, foreign: 'database_not_found' },
  listDatabaseTables: { foreign: 'database_not_found' },
  getDatabaseLog: { foreign: 'database_not_found' },
  listDatabasePoints: { foreign: 'database_not_found' },
  listDatabaseMoments: { foreign: 'database_not_found' },
  getDatabaseMetrics: { foreign: 'database_not_found' },
  dumpDatabase: { foreign: 'database_not_found' },
  loadDatabase: { form: true, foreign: 'database_not_found' },
  ...RECOVERY_OPERATIONS,
  createVm: { json: { name: 'm', instance_type: 't2.micro' } },
  listVms: {},
  listVmPoints: { foreign: 'vm_not_found' },
  getVm: { foreign: 'vm_not_found' },
  startVm: { foreign: 'vm_not_found' },
  stopVm: { foreign: 'vm_not_found' },
  deleteVm: { foreign: 'vm_not_found' },
  getVmMetrics: { foreign: 'vm_not_found' },
  lendSshKey: { json: { public_key: SSH_KEY }, foreign: 'vm_not_found' },
  createConsoleTicket: { foreign: 'vm_not_found' },
  getVmLog: { foreign: 'vm_not_found' },
  openConsole: { foreign: 'vm_not_found' },
  publishVmPort: { foreign: 'vm_not_found', json: { port: 80 } },
  listVmPorts: { foreign: 'vm_not_found' },
  unpublishVmPort: { foreign: 'vm_not_found' },
  openVmTunnel: { foreign: 'vm_not_found' },
  openDatabaseTunnel: { foreign: 'database_not_found' },
  watchUpdates: {},
  createWebhook: { json: { url: 'https://example.org/hook' } },
  listWebhooks: {},
  getWebhook: { foreign: 'webhook_not_found' },
  changeWebhook: { json: { enabled: false }, foreign: 'webhook_not_found' },
  deleteWebhook: { foreign: 'webhook_not_found' },
  getWebhookSecret: { foreign: 'webhook_not_found' },
  rotateWebhookSecret: { json: {}, foreign: 'webhook_not_found' },
  testWebhook: { foreign: 'webhook_not_found' },
  listWebhookDeliveries: { foreign: 'webhook_not_found' },
  replayWebhookDelivery: { foreign: 'webhook_not_found' },
  recoverWebhook: { json: { since: '2026-01-01 00:00:00' }, foreign: 'webhook_not_found' },
  listOperations: {},
  getOperation: { foreign: 'operation_not_found' },
  cancelOperation: { foreign: 'operation_not_found' },
  getUsage: {},
  listLedger: {},
  getEstimate: {},
  listPrices: {},
  adminListPrices: {},
  adminSetPrice: { json: { meter: 'egress', price: 0 } },
  adminGetStatement: {},
  adminGetRevenue: {},
  startLedgerVerification: {},
  getLedgerVerification: {},
  adminGetMetrics: {},
  startScrub: {},
  getScrub: {},
  rotateMasterKey: {},
};

/** What the owner has, by the start of its path. */
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
const guarded = entries.filter(({ operation }) => operation['x-permission'] !== 'public');
const admin = anyone.as(ADMIN_KEY);
let owned: Property;

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

/** What `{id}` is of, by where the path begins; an access key elsewhere. */
const IDS: Readonly<Record<string, keyof Property>> = {
  '/api/admin/': 'account',
  '/api/operations/': 'operation',
  '/api/account/sessions/': 'session',
  '/api/storage/': 'object',
  '/api/webhooks/': 'webhook',
};

/** The call with the owner's ids in its path. */
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
  const { json, form } = CASES[operation.operationId] ?? {};
  if (!form) return [url, { method, json }];
  const body = new FormData();
  body.set('file', new Blob(['x']), 'x.txt');
  return [url, { method, body }];
}

/** A problem without the names that were asked for. */
function worded(problem: object, names: readonly string[]): string {
  const text = JSON.stringify({ ...problem, request_id: '' });
  return names.reduce((rest, name) => rest.replaceAll(name, '…'), text);
}

test('every operation is a case here, and every case is an operation', () => {
  const names = entries.map(({ operation }) => operation.operationId);
  const known = [...Object.keys(PUBLIC), ...Object.keys(CASES)];
  assert.deepEqual([...names].sort(), known.sort());
  for (const { operation } of guarded) assert.ok(operation.operationId in CASES, operation.operationId);
  // Each that names something of an account is tried by another account.
  const untried = guarded.filter(
    ({ path, operation: { operationId, 'x-permission': permission } }) =>
      path.includes('{') && permission !== 'admin' && CASES[operationId]?.foreign === undefined,
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
    const operations = entries.filter(({ operation }) => operation['x-permission'] === 'admin');
    assert.ok(operations.length >= 9);
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
      // Who may write may append.
      const granting = permission === 'storage:append' ? [permission, 'storage:write'] : [permission];
      const others =
        permission === 'admin' ? ['storage:*'] : SCOPES.filter((scope) => !granting.includes(scope));
      const json = { name: 'lacks one', scopes: others };
      const { id, api_key } = await owner.expect(201, '/api/account/access-keys', { json });
      const code = permission === 'admin' ? 'admin_required' : 'scope_required';
      await anyone.as(api_key).refused(403, code, callOf(entry));
      await owner.expect(200, `/api/account/access-keys/${id}`, { method: 'DELETE' });
    }
  });

  test("an administrator's limited key is no administrator's key", async () => {
    const json = { name: 'limited', scopes: ['account:*', 'storage:*', 'compute:*', 'billing:*'] };
    const { api_key } = await admin.expect(201, '/api/account/access-keys', { json });
    for (const entry of entries) {
      if (entry.operation['x-permission'] !== 'admin') continue;
      await anyone.as(api_key).refused(403, 'admin_required', callOf(entry));
    }
  });
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
