/** A spend cap per account: set, reported, reached by a running machine, and lifted; also across a kill. */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CheckedClient } from '../harness/checked-client.ts';
import type { Account } from '../harness/client.ts';
import { ADMIN_KEY, CloudProcess } from '../harness/cloud-process.ts';
import { eventually } from '../harness/waiting.ts';
import { WebhookReceiver } from '../harness/webhook-receiver.ts';
import { cannotRunGuests, idleImage, newVm, removeAll } from './vms-kit.ts';

let cloud: CloudProcess;
let client: CheckedClient;
before(async () => {
  // Caps are checked as often as the grace period of credits is long.
  const env = {
    CLOUDLET_CREDIT_GRACE_SECONDS: '1',
    CLOUDLET_VM_GRACE_SECONDS: '1',
    CLOUDLET_FETCH_ALLOW: '127.0.0.0/8',
  };
  cloud = await CloudProcess.start({ env });
  client = await CheckedClient.open(cloud.api);
});
after(() => cloud.stop());

const PATCH = (json: object) => ({ method: 'PATCH', json });
const setCap = (user: CheckedClient, json: object) => user.expect(200, '/api/billing/cap', PATCH(json));
const byAdmin = (account: Account, spend_cap: number | null) =>
  client.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${account.id}`, PATCH({ spend_cap }));

describe('a cap', () => {
  test('is the lower of the owner’s and an administrator’s, and says what is refused', async () => {
    const account = await client.register();
    const user = client.as(account.api_key);
    const none = await user.expect(200, '/api/billing/cap');
    assert.deepEqual(
      [none.cap, none.own_cap, none.administrator_cap, none.percent, none.is_reached, none.warn_percent],
      [null, null, null, null, false, [50, 80]],
    );
    const own = await setCap(user, { cap: 3, warn_percent: [90, 25] });
    assert.deepEqual([own.cap, own.warn_percent, own.percent], [3, [25, 90], 0]);
    assert.equal((await byAdmin(account, 2)).spend_cap, 2);
    const both = await user.expect(200, '/api/billing/cap');
    assert.deepEqual([both.cap, both.own_cap, both.administrator_cap], [2, 3, 2]);
    const seen = await client.as(ADMIN_KEY).expect(200, `/api/admin/accounts/${account.id}/spend-cap`);
    assert.deepEqual([seen.account_id, seen.cap], [account.id, 2]);
    // The owner cannot raise it above the administrator's.
    assert.equal((await setCap(user, { cap: 1000 })).cap, 2);
    assert.equal((await setCap(user, { cap: null })).cap, 2);
    await byAdmin(account, 0);
    const problem = await user.refused(402, 'spend_cap_reached', [
      '/api/buckets',
      { json: { name: 'no-more' } },
    ]);
    assert.deepEqual([problem.cap, problem.spent], [0, 0]);
    assert.match(problem.hint, /^Reading, exporting, stopping and deleting still work; .* administrator/);
    await byAdmin(account, null);
    await user.expect(201, '/api/buckets', { json: { name: 'no-more' } });
  });

  test('is refused with what is wrong with it', async () => {
    const user = client.as((await client.register()).api_key);
    const wrong = [
      ...[{ cap: -1 }, { cap: '3' }, { cap: 0.0000001 }, { cap: 2e9 }],
      ...[{ warn_percent: [0] }, { warn_percent: [100] }, { warn_percent: [50, 50] }, { limit: 3 }],
    ];
    for (const json of wrong) await user.refused(400, 'invalid_request', ['/api/billing/cap', PATCH(json)]);
    await client.as(ADMIN_KEY).refused(404, 'account_not_found', ['/api/admin/accounts/999999/spend-cap']);
  });
});

describe('before something is created', () => {
  test('its price by month and how long the credits last with it', async () => {
    const user = client.as((await client.register()).api_key);
    const quote = (query: string) => user.expect(200, `/api/billing/quote?${query}`);
    const vm = await quote('resource_type=vm&instance_type=t2.micro');
    assert.deepEqual([vm.per_hour, vm.per_month, vm.spendable, vm.days_left], [0.0116, 8.468, 10, null]);
    assert.equal(vm.days_left_with, Math.floor((10 / 0.0116 / 24) * 100) / 100);
    assert.deepEqual(
      vm.items.map((item: { meter: string; quantity: number }) => [item.meter, item.quantity]),
      [
        ['vm.time', 1],
        ['vm.disk', 30],
      ],
    );
    await setCap(user, { cap: 0.01 });
    assert.match((await quote('resource_type=vm&instance_type=t2.micro')).cap_reached_with ?? '2', /^2/);
    const bucket = await quote('resource_type=bucket&size_gb=10');
    assert.deepEqual([bucket.per_month, bucket.days_left_with, bucket.cap], [0, null, 0.01]);
    assert.equal((await quote('resource_type=database&engine=sqlite')).items[0].meter, 'database.storage');
    for (const query of [
      'resource_type=vm',
      'resource_type=vm&instance_type=x',
      'resource_type=database&engine=x',
      '',
    ])
      await user.refused(400, 'invalid_request', [`/api/billing/quote?${query}`]);
  });
});

describe('calls that are under way when the cap is reached', () => {
  test('an upload that has begun is stored whole; the next one is refused', async () => {
    const user = client.as((await client.register()).api_key);
    await user.expect(201, '/api/buckets', { json: { name: 'slow' } });
    let goOn = (_: string) => {};
    const rest = new Promise<string>((resolve) => {
      goOn = resolve;
    });
    const encoder = new TextEncoder();
    const beginning = '--x\r\ncontent-disposition: form-data; name="file"; filename="a.txt"\r\n\r\n';
    const body = new ReadableStream({
      async start(controller) {
        controller.enqueue(encoder.encode(`${beginning}${'a'.repeat(100_000)}`));
        controller.enqueue(encoder.encode(`${await rest}\r\n--x--\r\n`));
        controller.close();
      },
    });
    const headers = { 'x-api-key': user.key ?? '', 'content-type': 'multipart/form-data; boundary=x' };
    const url = `${cloud.api}/api/buckets/slow/upload`;
    const sent = fetch(url, { method: 'POST', headers, body, duplex: 'half' });
    // Its start cannot be observed; by now it has started.
    for (let calls = 0; calls < 20; calls++) await user.expect(200, '/api/buckets');
    await setCap(user, { cap: 0 });
    assert.equal((await user.upload('slow', 'b.txt', 'refused')).status, 402);
    goOn('the end');
    const answer = await sent;
    const made = (await answer.json()) as { object_id: string };
    assert.equal(answer.status, 200, JSON.stringify(made));
    assert.equal((await user.download(made.object_id)).length, 100_007);
    assert.equal((await user.upload('slow', 'c.txt', 'refused')).status, 402);
  });

  test('databases that are created as it is reached are closed, whole or not there', async () => {
    const user = client.as((await client.register()).api_key);
    const creations = Array.from({ length: 5 }, (_, at) =>
      user.call('/api/databases', { json: { name: `d${at}` } }),
    );
    await setCap(user, { cap: 0 });
    const answers = await Promise.all(creations);
    for (const { status, body } of answers) {
      const isEnded = body.code === 'database_not_ready' && /reached its spend cap/.test(body.detail);
      assert.ok(status === 201 || isEnded || body.code === 'spend_cap_reached', JSON.stringify(body));
    }
    const made = answers.filter(({ status }) => status === 201).length;
    await eventually('all are closed', async () => {
      const all: { state: string; state_reason: { code: string } | null }[] = await user.expect(
        200,
        '/api/databases',
      );
      assert.ok(all.length >= made, `${all.length} of ${made}`);
      return all.every(
        ({ state, state_reason: why }) => state !== 'ready' && why?.code === 'spend_cap_reached',
      );
    });
    await setCap(user, { cap: null });
    await eventually('all are open', async () => {
      const all: { state: string }[] = await user.expect(200, '/api/databases');
      return all.every(({ state }) => state === 'ready');
    });
  });
});

describe('a machine whose account reaches its cap', { skip: cannotRunGuests() }, () => {
  let user: CheckedClient;
  let vm: string;
  let hook: WebhookReceiver;
  before(async () => {
    const account = await client.register();
    user = client.as(account.api_key);
    hook = await WebhookReceiver.open();
    await user.expect(201, '/api/webhooks', { json: { url: hook.url, events: ['*'] } });
    vm = await newVm(user, await idleImage(client.as(ADMIN_KEY)));
  });
  after(async () => {
    await removeAll(user);
    await hook.close();
  });
  const types = () => hook.received.map(({ body }) => String(JSON.parse(body).type));
  const spendEvents = () => types().filter((type) => type.startsWith('billing.'));
  const vmIs = (wanted: string) =>
    eventually(`a machine that is ${wanted}`, async () => {
      const found = await user.expect(200, vm);
      return found.state === wanted && found;
    });

  test('is stopped; nothing is deleted, and nothing new begins', async () => {
    await user.expect(201, '/api/buckets', { json: { name: 'kept' } });
    const { body } = await user.upload('kept', 'a.txt', 'mine');
    await setCap(user, { cap: 0.00005, warn_percent: [40] });
    await user.expect(200, `${vm}/start`, { method: 'POST' });
    const { expected_at } = await user.expect(200, '/api/billing/cap');
    assert.ok(expected_at === null || expected_at > '2000', 'it is seconds away');
    assert.equal((await vmIs('stopped')).state_reason.code, 'spend_cap_reached');
    const cap = await user.expect(200, '/api/billing/cap');
    const usage = await user.expect(200, '/api/billing/usage');
    assert.equal(cap.spent, usage.total_cost, 'one number');
    assert.deepEqual([cap.is_reached, cap.expected_at], [true, null]);
    assert.ok(cap.reached_since !== null && cap.percent >= 100);
    for (const call of [
      [`${vm}/start`, { method: 'POST' }],
      ['/api/buckets', { json: { name: 'more' } }],
      ['/api/vms', { json: { name: 'm', instance_type: 't2.micro' } }],
      ['/api/databases', { json: { name: 'd' } }],
    ] as const)
      await user.refused(402, 'spend_cap_reached', [...call]);
    assert.equal((await user.upload('kept', 'b.txt', 'more')).status, 402);
    assert.equal(String(await user.download(body.object_id)), 'mine');
    const costs = await user.expect(200, '/api/billing/usage/resources');
    assert.equal(costs.total_cost, cap.spent);
    assert.deepEqual([costs.resources[0].name, costs.resources[0].is_deleted], ['web', false]);
    assert.equal(costs.resources[0].days.at(-1), costs.resources[0].cost);
    const csv = await user.fetch('/api/billing/usage/resources', { headers: { accept: 'text/csv' } });
    assert.match(
      await csv.text(),
      /^date,resource_type,resource_id,name,cost\r\n\d{4}-\d\d-\d\d,vm,vm-[a-z0-9]+,web,0\.0000\d+\r\n$/,
    );
    await eventually('both events', async () => spendEvents().length >= 2);
    assert.deepEqual(spendEvents(), ['billing.spend_warning', 'billing.spend_cap_reached']);
  });

  test('stays stopped across a kill, is told once, and starts with a higher cap', async () => {
    await cloud.crash();
    await cloud.start();
    client = await CheckedClient.open(cloud.api);
    user = client.as(user.key);
    await eventually('the cap is looked at', async () => {
      const cap = await user.expect(200, '/api/billing/cap');
      return cap.is_reached && cap.reached_since !== null;
    });
    assert.equal((await user.expect(200, vm)).state, 'stopped');
    await setCap(user, { cap: 5 });
    await vmIs('running');
    await eventually('the event', async () => spendEvents().includes('billing.spend_cap_lifted'));
    const told = ['billing.spend_warning', 'billing.spend_cap_reached', 'billing.spend_cap_lifted'];
    assert.deepEqual(spendEvents(), told);
    await user.expect(200, `${vm}/stop?force=true`, { method: 'POST' });
  });

  test('that is being started as the cap is reached does not stay running', async () => {
    for (let round = 0; round < 3; round++) {
      await setCap(user, { cap: 5 });
      const starting = user.call(`${vm}/start`, { method: 'POST' });
      await setCap(user, { cap: 0.00005 });
      const { status, body } = await starting;
      assert.ok(status === 200 || body.code === 'spend_cap_reached', `${status} ${body.code}`);
      assert.equal((await vmIs('stopped')).name, 'web');
      await eventually(
        'it stays so',
        async () => (await user.expect(200, '/api/billing/cap')).reached_since !== null,
      );
      await vmIs('stopped');
    }
  });
});
