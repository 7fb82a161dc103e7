/** No secret gets into the audit log, whatever text any operation is called with. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient, type Entry } from '../harness/checked-client.ts';
import { sessionOf } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';

const cloud = await CloudProcess.start({ env: { CLOUDLET_RATE_REQUESTS: '100000' } });
after(() => cloud.stop());
const anyone = await CheckedClient.open(cloud.api);
const admin = anyone.as(ADMIN_KEY);

const MARK = 'kanarienvogel-7319';
/** Members shown in entries, by operation; all others must be absent. */
const SHOWN: Readonly<Record<string, readonly string[]>> = {
  register: ['username'],
  login: ['username'],
  adminCreatePlan: ['name'],
  adminCreateInvitation: ['label', 'username', 'email', 'plan'],
  adminImportInvitations: ['plan'],
  createAccessKey: ['name'],
  approveLogin: ['name'],
  adminCreateAccount: ['username'],
  adminAdjustCredits: ['reason', 'transfer_id'],
  adminSuspendAccount: ['reason'],
  adminRemoveAccount: ['reason'],
  createVm: ['name', 'image_id', 'instance_type'],
  createDatabase: ['name'],
  createBucket: ['name'],
  restoreBucket: ['point_id', 'to_bucket'],
  adminSetPrice: ['instance_type', 'plan', 'engine'],
  adminChangeAccount: ['plan'],
};

interface Schema {
  readonly type?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly pattern?: string;
  readonly patternProperties?: Readonly<Record<string, Schema>>;
}

/** A value of this shape with the mark in every text. */
function marked(schema: Schema, name: string, shown: readonly string[]): unknown {
  if (schema.enum !== undefined) return schema.enum[0];
  if (schema.const !== undefined) return schema.const;
  if (schema.anyOf !== undefined) return marked(schema.anyOf[0] ?? {}, name, shown);
  if (schema.properties !== undefined) {
    const members = Object.entries(schema.properties);
    return Object.fromEntries(members.map(([key, member]) => [key, marked(member, key, shown)]));
  }
  if (schema.type === 'array') return [marked(schema.items ?? {}, name, shown)];
  if (schema.type === 'object') return { [`${MARK}-key`]: MARK };
  if (schema.type === 'boolean') return true;
  if (schema.type === 'integer' || schema.type === 'number') return schema.minimum ?? 1;
  if (shown.includes(name)) return 'plain-name';
  if (/e-?mail/.test(name)) return `${MARK}@example.org`;
  if (/url|uri/.test(name)) return `http://127.0.0.1:9/${MARK}`;
  return MARK;
}

function callOf({ method, path, operation }: Entry) {
  const { operationId, requestBody, parameters } = operation;
  const body = Object.values(requestBody?.content ?? {})[0]?.schema as Schema | undefined;
  const query = parameters.filter((each) => each.in === 'query').map((each) => `${each.name}=${MARK}`);
  const url = `${path.replaceAll(/\{\w+\}/g, 'plain-name')}?${query.join('&')}`;
  const json = body === undefined ? undefined : marked(body, '', SHOWN[operationId] ?? []);
  return { url, bare: url.split('?')[0] ?? '', call: { method, json } };
}

/** Operations that end or lock something the test needs. */
const LEFT_OUT: ReadonlySet<string> = new Set(['closeAccount', 'watchUpdates', 'rotateMasterKey']);

const wholeLog = () => admin.fetch('/api/audit?account_id=all&format=jsonl').then((answer) => answer.text());

test('no marked text of any call is in the log', async () => {
  const user = anyone.as((await anyone.register()).api_key);
  let tried = 0;
  for (const entry of anyone.declaration.operations) {
    const { operationId, 'x-permission': permission } = entry.operation;
    if (LEFT_OUT.has(operationId)) continue;
    const { url, bare, call } = callOf(entry);
    const headers = {
      'idempotency-key': `${MARK}-${tried}`,
      cookie: `x=${MARK}`,
      referer: `http://x/${MARK}`,
    };
    const client = permission.startsWith('admin') ? admin : user;
    // Sent with clients that do not validate, because most calls are refused. Once with a bad query, once
    // without one.
    for (const path of [url, bare]) {
      const answer = await client.fetch(path, { ...call, headers });
      await answer.body?.cancel();
    }
    await (await anyone.fetch(url, { ...call, headers: { 'x-api-key': MARK } })).body?.cancel();
    tried++;
  }
  assert.ok(tried > 100);
  await sleep(1500);
  const log = await wholeLog();
  assert.ok(log.split('\n').length > 60, 'it has what was done and refused');
  assert.deepEqual(
    log.split('\n').filter((line) => line.includes(MARK)),
    [],
  );
});

test('no secret that was made or shown is in the log', async () => {
  const password = `${MARK} password`;
  const username = 'holder-of-secrets';
  const register = { username, email: 'holder@example.org', password };
  const { id, api_key } = await anyone.expect(201, '/api/register', { json: register });
  const user = anyone.as(api_key);
  const login = await anyone.call('/api/login', { json: { username, password } });
  await anyone.call('/api/login', { json: { username, password: `${MARK} wrong` } });
  const headers = sessionOf(login);
  await anyone.call('/api/account', { headers });
  const key = await user.expect(201, '/api/account/access-keys', { json: { name: 'k', scopes: ['*'] } });
  const hook = await user.expect(201, '/api/webhooks', { json: { url: `https://example.org/${MARK}` } });
  const { secret } = await user.expect(200, `/api/webhooks/${hook.id}/secret`);
  const shown = await admin.expect(200, `/api/admin/accounts/${id}/api-key`, { method: 'POST' });
  const link = await admin.expect(201, `/api/admin/accounts/${id}/reset-link`, { method: 'POST' });
  await user.expect(201, '/api/buckets', { json: { name: 'secret-holder' } });
  const { body: object } = await user.upload('secret-holder', `${MARK}.txt`, MARK, {
    metadata: JSON.stringify({ note: MARK }),
  });
  const signed = await user.expect(200, `/api/storage/${object.object_id}/cdn-url`);
  const database = await user.expect(201, '/api/databases', { json: { name: 'd', engine: 'sqlite' } });
  const path = `/api/databases/${database.database_id}`;
  const credentials = await user.expect(200, `${path}/credentials`);
  await user.call(`${path}/query`, { json: { statement: `SELECT '${MARK}'` } });
  const change = { current_password: password, password: `${MARK} another`, email: `${MARK}-2@example.org` };
  await user.expect(200, '/api/account', { method: 'PATCH', json: change });
  const rotated = await user.expect(200, '/api/account/api-key', { json: {} });
  await sleep(1500);
  const log = await wholeLog();
  const secrets = [
    ...[MARK, api_key, key.api_key, hook.secret, secret, shown.api_key, rotated.api_key],
    ...[new URL(link.url).hash.slice(1), new URL(signed.url ?? signed.cdn_url).search, headers.cookie],
    ...[headers['cloudlet-session'], JSON.stringify(credentials).match(/"password":"([^"]+)"/)?.[1]],
    ...Object.values(key).filter((value): value is string => /^[\w/+-]{30,}$/.test(String(value))),
  ].filter((text) => text !== undefined && text !== '' && text !== key.id);
  assert.ok(secrets.length > 9);
  for (const text of secrets) assert.ok(!log.includes(String(text)), `${text} is in the log`);
  const actions = new Set(
    log
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
      .filter((row) => row.account_id === id)
      .map((row) => row.action),
  );
  for (const action of [
    'createAccessKey',
    'getWebhookSecret',
    'adminShowApiKey',
    'getDatabaseCredentials',
    'updateAccount',
  ])
    assert.ok(actions.has(action), action);
});
