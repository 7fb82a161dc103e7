/** Entries of the audit log as events: an owner receives those of its account, administrators all. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';

interface Heard {
  readonly type: string;
  readonly data: { readonly action: string; readonly target: string; readonly account_id: number | null };
}

let cloud: CloudProcess;
let receiver: WebhookReceiver;
let operator: CheckedClient;
let ada: CheckedClient;
let ben: CheckedClient;
before(async () => {
  receiver = await WebhookReceiver.open();
  receiver.reply = () => ({ status: 200 });
  cloud = await CloudProcess.start({ env: { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' } });
  operator = await CheckedClient.open(cloud.api, ADMIN_KEY);
  const anyone = await CheckedClient.open(cloud.api);
  [ada, ben] = [anyone.as((await anyone.register()).api_key), anyone.as((await anyone.register()).api_key)];
});
after(async () => {
  await cloud?.stop();
  await receiver?.close();
});
beforeEach(() => receiver.received.splice(0));

const heardAt = (path: string): Heard[] =>
  receiver.received.filter((one) => one.path === path).map(({ body }) => JSON.parse(body));
const targetsAt = (path: string) =>
  heardAt(path)
    .filter(({ data }) => data.action === 'createBucket')
    .map(({ type, data }) => [type, data.target]);
const newHook = (client: CheckedClient, path: string, events?: readonly string[]) =>
  client.expect(201, '/api/webhooks', { json: { url: `${receiver.url}${path}`, ...(events && { events }) } });
const newBucket = (client: CheckedClient, name: string) =>
  client.expect(201, '/api/buckets', { json: { name } });
const hears = (path: string, target: string) =>
  eventually(`${path} hears of ${target}`, async () => targetsAt(path).some(([, name]) => name === target));
const hookPath = (name: string) => `${new URL(receiver.url).pathname}${name}`;

test('an owner hears of its account only, and an administrator of all', async () => {
  const made = await newHook(ada, '/ada', ['audit.*']);
  assert.equal(made.audit_of, 'account');
  assert.equal((await newHook(operator, '/operator', ['audit.done'])).audit_of, 'all');
  assert.equal((await newHook(ada, '/other')).audit_of, null);
  await newBucket(ada, 'of-ada');
  await newBucket(ben, 'of-ben');
  await hears(hookPath('/operator'), 'of-ben');
  await hears(hookPath('/ada'), 'of-ada');
  assert.deepEqual(targetsAt(hookPath('/operator')), [
    ['audit.done', 'of-ada'],
    ['audit.done', 'of-ben'],
  ]);
  assert.deepEqual(targetsAt(hookPath('/ada')), [['audit.done', 'of-ada']]);
  assert.deepEqual(heardAt(hookPath('/other')), [], 'entries are too many for those who want all events');
  const [entry] = await ada.expect(200, '/api/audit?action=createBucket&limit=1');
  const { id, ...shown } = entry;
  assert.ok(id > 0);
  const heard = heardAt(hookPath('/ada')).find(({ data }) => data.action === 'createBucket');
  assert.deepEqual(heard?.data, shown);
  await ada.refused(404, 'bucket_not_found', ['/api/buckets/of-ben', { method: 'DELETE' }]);
  await eventually('the refusal is heard', async () =>
    heardAt(hookPath('/ada')).some(
      ({ type, data }) => type === 'audit.refused' && data.action === 'deleteBucket',
    ),
  );
  // Deliveries have no entries of their own, otherwise this would never end.
  await eventually('nothing waits', async () => {
    const log = await ada.expect(200, `/api/webhooks/${made.id}/deliveries?state=pending`);
    return log.length === 0;
  });
  const before = receiver.received.length;
  await ada.expect(200, '/api/audit?limit=1');
  assert.equal(receiver.received.length, before);
});

test('no secret that a call shows or takes is in an event', async () => {
  await newHook(ada, '/secrets', ['audit.*']);
  const key = await ada.expect(201, '/api/account/access-keys', {
    json: { name: 'canary', scopes: ['storage:read'] },
  });
  const hook = await newHook(ada, '/canary', ['vm.failed']);
  await eventually('both are heard', async () => {
    const actions = heardAt(hookPath('/secrets')).map(({ data }) => data.action);
    return ['createAccessKey', 'createWebhook'].every((action) => actions.includes(action));
  });
  const sent = receiver.received.map(({ body }) => body).join('\n');
  const secrets = [key.api_key, key.secret_access_key, hook.secret, ada.key];
  assert.ok(secrets.every((secret) => typeof secret === 'string' && secret.length >= 30));
  for (const secret of secrets) assert.ok(!sent.includes(secret), secret.slice(0, 8));
});

test('a key without the right to read the log neither hears nor sees entries', async () => {
  const keyOf = async (client: CheckedClient, scopes: readonly string[]) =>
    client.as(
      (await client.expect(201, '/api/account/access-keys', { json: { name: scopes.join(), scopes } }))
        .api_key,
    );
  const narrow = await keyOf(ada, ['webhooks:*']);
  const json = { url: `${receiver.url}/narrow`, events: ['audit.*'] };
  await narrow.refused(403, 'scope_required', ['/api/webhooks', { json }]);
  const { id } = await newHook(ada, '/mine', ['audit.*']);
  const patch = (change: object) => ({ method: 'PATCH', json: change });
  await narrow.refused(403, 'scope_required', [`/api/webhooks/${id}`, patch({ url: json.url })]);
  await narrow.expect(200, `/api/webhooks/${id}`, patch({ description: 'named' }));
  await newBucket(ada, 'seen-by-whom');
  await hears(hookPath('/mine'), 'seen-by-whom');
  const payloads = async (client: CheckedClient) =>
    (await client.expect(200, `/api/webhooks/${id}/deliveries`)).map(
      ({ payload }: { payload: unknown }) => payload !== null,
    );
  assert.deepEqual(new Set(await payloads(narrow)), new Set([false]));
  assert.deepEqual(new Set(await payloads(ada)), new Set([true]));
  const limited = await keyOf(operator, ['webhooks:*', 'account:read']);
  const made = await newHook(limited, '/limited', ['audit.*']);
  assert.equal(made.audit_of, 'account');
  await newBucket(ben, 'not-for-limited');
  await newHook(operator, '/whole', ['audit.*']);
  await newBucket(ben, 'for-whole');
  await hears(hookPath('/whole'), 'for-whole');
  assert.deepEqual(targetsAt(hookPath('/limited')), []);
});

test('who is no administrator any more hears of its own account only, also by what waited', async () => {
  const json = { username: 'deputy', email: 'deputy@example.org', password: 'correct horse', is_admin: true };
  const { id: account, api_key } = await operator.expect(201, '/api/admin/accounts', { json });
  const deputy = operator.as(api_key);
  receiver.reply = ({ path }) => ({ status: path.endsWith('/deputy') ? 500 : 200 });
  const { id } = await newHook(deputy, '/deputy', ['audit.*']);
  await newBucket(ben, 'failed-once');
  await hears(hookPath('/deputy'), 'failed-once');
  await operator.expect(200, `/api/admin/accounts/${account}`, {
    method: 'PATCH',
    json: { is_admin: false },
  });
  receiver.reply = () => ({ status: 200 });
  receiver.received.splice(0);
  const log = await operator.as(api_key).expect(200, `/api/webhooks/${id}/deliveries`);
  const [failed] = log.filter(({ payload }: { payload: unknown }) => payload === null);
  await deputy.expect(200, `/api/webhooks/${id}/deliveries/${failed.id}/replay`, { method: 'POST' });
  await newBucket(ben, 'after-that');
  await newBucket(deputy, 'of-deputy');
  await hears(hookPath('/deputy'), 'of-deputy');
  const again = await deputy.expect(200, `/api/webhooks/${id}/deliveries?state=failed`);
  assert.ok(again.some(({ id: one, reason }: { id: string; reason: string }) => one === failed.id && reason));
  for (const { data } of heardAt(hookPath('/deputy'))) assert.equal(data.account_id, account);
});

test('an entry and its event are stored in one commit, and heard after kill -9', async () => {
  await newHook(ben, '/killed', ['audit.done']);
  receiver.reply = () => ({ status: 503 });
  const names = Array.from({ length: 20 }, (_, i) => `kept-${i}`);
  await Promise.all(names.map((name) => newBucket(ben, name)));
  await cloud.crash();
  receiver.reply = () => ({ status: 200 });
  receiver.received.splice(0);
  await cloud.start();
  await eventually('all are heard', async () => {
    const heard = new Set(targetsAt(hookPath('/killed')).map(([, name]) => name));
    return names.every((name) => heard.has(name));
  });
});
