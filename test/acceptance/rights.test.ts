/** "What may this key do?": the answer is compared with the calls themselves. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { CheckedClient, type Entry } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { CliUser } from './cli-kit.ts';
import { S3Client } from './s3-kit.ts';

interface Right {
  readonly operation: string;
  readonly method: string;
  readonly path: string;
  readonly allowed: boolean;
  readonly code: string | null;
}

let cloud: CloudProcess;
let admin: CheckedClient;
before(async () => {
  cloud = await CloudProcess.start();
  admin = await CheckedClient.open(cloud.api, ADMIN_KEY);
});
after(() => cloud?.stop());

/** Calls without a body that would end or change something the test needs, and endless streams. */
const LEFT_OUT: ReadonlySet<string> = new Set([
  'closeAccount',
  'rotateMasterKey',
  'watchUpdates',
  'adminScrub',
]);
const REFUSALS: ReadonlySet<string> = new Set(['scope_required', 'admin_required', 'account_suspended']);

/**
 * Sends every call with nothing valid but the credential: returns the code of its refusal for lack of a
 * permission.
 */
async function tried(
  client: CheckedClient,
  { operation, method, path, allowed }: Right,
  sessionId: string,
): Promise<string | null> {
  const url = path.replaceAll(/\{\w+\}/g, operation === 'endSession' ? sessionId : 'nothing');
  // Its refusal comes from its handler, which sees no malformed body; a caller with the permission would lose
  // the key.
  const text = operation === 'rotateApiKey' && !allowed ? '{}' : '[';
  const body = method === 'GET' || method === 'DELETE' ? {} : { body: text };
  const headers = { 'content-type': 'application/json' };
  const answer = await client.fetch(url, { method, headers, ...body });
  const said = await answer.text();
  assert.ok(![401, 429].includes(answer.status), `${operation}: ${said}`);
  const code = answer.status === 403 ? String(JSON.parse(said).code) : '';
  return REFUSALS.has(code) ? code : null;
}

test('of keys with some scopes, each operation is allowed that is not refused', async () => {
  const { api_key, id, username } = await admin.register();
  const user = admin.as(api_key);
  const login = { json: { username, password: 'correct horse battery' } };
  await admin.as(undefined).expect(200, '/api/login', login);
  const [session] = await user.expect(200, '/api/account/sessions');
  const kinds = [['storage:read'], ['compute:*', 'billing:read'], ['account:write', 'databases:connect']];
  for (const scopes of kinds) {
    const key = await user.expect(201, '/api/account/access-keys', { json: { name: 'k', scopes } });
    const rights = await user.expect(200, `/api/account/rights?key=${key.id}`);
    assert.deepEqual([rights.scopes, rights.is_admin, rights.refused], [scopes, false, null]);
    assert.deepEqual(await admin.expect(200, `/api/admin/accounts/${id}/rights?key=${key.id}`), rights);
    const limited = user.as(key.api_key);
    for (const right of rights.operations.filter(({ operation }: Right) => !LEFT_OUT.has(operation))) {
      assert.equal(await tried(limited, right, session.id), right.code, `${scopes}: ${right.operation}`);
      assert.equal(right.allowed, right.code === null);
    }
  }
});

test('of people of each kind, each operation is allowed that is not refused', async () => {
  const kinds = {
    user: {},
    auditor: { is_auditor: true },
    administrator: { is_admin: true },
    suspended: {},
  };
  const isOpen = ({ operation }: Entry) => operation['x-permission'] === 'public';
  const publicOnes = new Set(
    admin.declaration.operations.filter(isOpen).map(({ operation }) => operation.operationId),
  );
  for (const [kind, json] of Object.entries(kinds)) {
    const { api_key, id, username } = await admin.register();
    const path = `/api/admin/accounts/${id}`;
    await admin.expect(200, path, { method: 'PATCH', json });
    const login = { json: { username, password: 'correct horse battery' } };
    await admin.as(undefined).expect(200, '/api/login', login);
    const person = admin.as(api_key);
    const [session] = await person.expect(200, '/api/account/sessions');
    if (kind === 'suspended') await admin.expect(200, `${path}/suspend`, { json: { reason: 'test' } });
    const { operations } = await admin.expect(200, `${path}/rights`);
    const differing: string[] = [];
    for (const right of operations.filter(({ operation }: Right) => !LEFT_OUT.has(operation))) {
      // A suspended caller is treated like an anonymous one here.
      const isPublic = publicOnes.has(right.operation);
      const code = await tried(isPublic ? person.as(undefined) : person, right, session.id);
      if (code !== right.code) differing.push(`${right.operation}: ${right.code}, but ${code}`);
      assert.equal(right.allowed, right.code === null);
    }
    assert.deepEqual(differing, [], kind);
  }
});

test('of S3, each operation is allowed that the protocol does not refuse', async () => {
  const owner = admin.as((await admin.register()).api_key);
  await owner.expect(201, '/api/buckets', { json: { name: 'with-rights', versioning: true } });
  await owner.upload('with-rights', 'there', 'x');
  for (const scopes of [['storage:read'], ['storage:append'], ['storage:write'], ['account:read']]) {
    const json = { name: 'k', scopes };
    const key = await owner.expect(201, '/api/account/access-keys', { json });
    const { s3_operations: rights } = await owner.expect(200, `/api/account/rights?key=${key.id}`);
    const s3 = new S3Client(cloud.data, key);
    const calls = {
      GetObject: ['GET', '/with-rights/there'],
      HeadObject: ['HEAD', '/with-rights/there'],
      PutObject: ['PUT', '/with-rights/new'],
      ListObjectsV2: ['GET', '/with-rights', 'list-type=2'],
      PutBucketTagging: ['PUT', '/with-rights', 'tagging'],
      DeleteObject: ['DELETE', '/with-rights/never-there'],
    } as const;
    for (const [operation, [method, path, query = '']] of Object.entries(calls)) {
      const right = rights.find((one: { operation: string }) => one.operation === operation);
      const { status } = await s3.call(method, path, { query });
      assert.equal(right.code, status === 403 ? 'scope_required' : null, `${scopes}: ${operation} ${status}`);
    }
  }
});

test('the client lists them', async () => {
  const user = await CliUser.signedIn(cloud.api);
  const owner = admin.as(user.key);
  const json = { name: 'k', scopes: ['storage:read'] };
  const { id } = await owner.expect(201, '/api/account/access-keys', { json });
  const allowed = await user.ok(['rights', id]);
  assert.match(allowed, /downloadObject[\s\S]*s3 GetObject +s3:GetObject/);
  assert.doesNotMatch(allowed, /uploadObject|s3 PutObject/);
  assert.match(await user.ok(['rights', id, '--refused']), /uploadObject .*scope_required/);
  assert.match(await user.ok(['rights']), /uploadObject[\s\S]*s3 PutObject/);
  const other = await user.run(['rights', '--account', 'admin']);
  assert.notEqual(other.code, 0);
});

test('of accounts: a user, an administrator, and one that is suspended', async () => {
  const { api_key, id } = await admin.register();
  const own = await admin.as(api_key).expect(200, '/api/account/rights');
  const count = ({ operations }: { operations: readonly Right[] }, code: string | null) =>
    operations.filter((one) => one.code === code).length;
  assert.ok(count(own, 'admin_required') > 20 && count(own, 'scope_required') === 0);
  const { paths } = await admin.expect(200, '/api/openapi.json');
  const all = Object.values(paths as Record<string, object>).flatMap((path) => Object.keys(path));
  assert.equal(own.operations.length, all.filter((word) => word !== 'parameters').length);
  const whole = await admin.expect(200, '/api/account/rights');
  assert.equal(count(whole, null), whole.operations.length);
  await admin.expect(200, `/api/admin/accounts/${id}/suspend`, { json: { reason: 'test' } });
  const shut = await admin.expect(200, `/api/admin/accounts/${id}/rights`);
  assert.deepEqual([shut.refused, count(shut, 'admin_required')], ['account_suspended', 0]);
  await admin.refused(404, 'access_key_not_found', [`/api/admin/accounts/${id}/rights?key=key-nothing`]);
  await admin.refused(404, 'account_not_found', ['/api/admin/accounts/999999/rights']);
});
