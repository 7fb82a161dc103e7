/** Webhooks of a real cloud, with a receiver on loopback. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { CheckedClient } from '../harness/checked-client.ts';
import { CloudProcess } from '../harness/cloud-process.ts';
import { isGenuine, WebhookReceiver } from '../harness/webhook-receiver.ts';

interface LoggedDelivery {
  readonly id: string;
  readonly event_id: string;
  readonly type: string;
  readonly state: string;
  readonly attempts: readonly { readonly status: number | null; readonly error: string | null }[];
}

const POST = { method: 'POST' };
let receiver: WebhookReceiver;
before(async () => {
  receiver = await WebhookReceiver.open();
});
after(() => receiver.close());
beforeEach(() => {
  receiver.received.length = 0;
  receiver.reply = () => ({ status: 200, body: 'thank you' });
});

/** The log, once `isDone` returns true; fails after 20 s. */
async function logOf(
  user: CheckedClient,
  webhookId: string,
  isDone: (log: readonly LoggedDelivery[]) => boolean,
): Promise<readonly LoggedDelivery[]> {
  for (let i = 0; ; i++) {
    const log = await user.expect(200, `/api/webhooks/${webhookId}/deliveries`);
    if (isDone(log)) return log;
    assert.ok(i < 400, `the log stays ${JSON.stringify(log)}`);
    await sleep(50);
  }
}

const isDelivered = (count: number) => (log: readonly LoggedDelivery[]) =>
  log.length === count && log.every(({ state }) => state === 'delivered');

describe('with loopback allowed', () => {
  let cloud: CloudProcess;
  let user: CheckedClient;
  before(async () => {
    cloud = await CloudProcess.start({ env: { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' } });
    const anyone = await CheckedClient.open(cloud.api);
    user = anyone.as((await anyone.register()).api_key);
  });
  after(() => cloud.stop());

  /** The client of the cloud after its last start. */
  const reopen = async () => {
    user = (await CheckedClient.open(cloud.api)).as(user.key);
  };

  test('a test event arrives signed, and the log says so; the secret rotates', async () => {
    const json = { url: receiver.url, events: ['vm.stopped'], description: 'mine' };
    const { id, secret } = await user.expect(201, '/api/webhooks', { json });
    const made = await user.expect(201, `/api/webhooks/${id}/test`, POST);
    await receiver.reached(1);
    const [got] = receiver.received;
    assert.ok(got !== undefined && (await isGenuine(secret, got)));
    assert.equal(got.id, made.event_id);
    assert.deepEqual(JSON.parse(got.body), made.payload);
    const [delivery] = await logOf(user, id, isDelivered(1));
    assert.deepEqual(
      delivery?.attempts.map(({ status, error }) => [status, error]),
      [[200, null]],
    );
    const inState = (state: string) => user.expect(200, `/api/webhooks/${id}/deliveries?state=${state}`);
    assert.deepEqual([await inState('delivered'), await inState('failed')], [[delivery], []]);
    const rotated = await user.expect(200, `/api/webhooks/${id}/rotate-secret`, { json: {} });
    assert.equal(rotated.previous_secret, secret);
    assert.deepEqual(await user.expect(200, `/api/webhooks/${id}/secret`), rotated);
    await user.expect(200, `/api/webhooks/${id}/deliveries/${made.id}/replay`, POST);
    await receiver.reached(2);
    const again = receiver.received[1];
    assert.ok(again !== undefined && again.id === got.id);
    for (const one of [secret, rotated.secret]) assert.ok(await isGenuine(one, again));
    await user.expect(200, `/api/webhooks/${id}`, { method: 'DELETE' });
    await user.refused(404, 'webhook_not_found', [`/api/webhooks/${id}`]);
  });

  test('the same Idempotency-Key makes one webhook and one event, and the same secret', async () => {
    const headers = { 'idempotency-key': 'once' };
    const json = { url: receiver.url };
    const first = await user.expect(201, '/api/webhooks', { json, headers });
    assert.deepEqual(await user.expect(201, '/api/webhooks', { json, headers }), first);
    assert.equal((await user.expect(200, '/api/webhooks')).length, 1);
    const path = `/api/webhooks/${first.id}/test`;
    const event = await user.expect(201, path, { ...POST, headers });
    assert.deepEqual(await user.expect(201, path, { ...POST, headers }), event);
    await logOf(user, first.id, isDelivered(1));
    await user.expect(200, `/api/webhooks/${first.id}`, { method: 'DELETE' });
  });

  test('what happens to a machine is announced, in order', async () => {
    const { id } = await user.expect(201, '/api/webhooks', { json: { url: receiver.url } });
    const vm = await user.expect(201, '/api/vms', { json: { name: 'web', instance_type: 't2.micro' } });
    const path = `/api/vms/${vm.vm_id}`;
    await user.expect(200, `${path}/start`, POST);
    await user.expect(200, `${path}/stop?force=true`, POST);
    await user.expect(200, path, { method: 'DELETE' });
    await receiver.reached(3);
    const events = receiver.received.map(({ body }) => JSON.parse(body));
    assert.deepEqual(
      events.map(({ type, data }) => [type, data.vm_id, data.state, data.reason?.code]),
      [
        ['vm.started', vm.vm_id, 'running', undefined],
        ['vm.stopped', vm.vm_id, 'stopped', 'powered_off'],
        ['vm.deleted', vm.vm_id, 'deleted', undefined],
      ],
    );
    for (const { data } of events) assert.equal(data.ip_address, vm.ip_address);
    await user.expect(200, `/api/webhooks/${id}`, { method: 'DELETE' });
  });

  test('what was accepted before kill -9 arrives after the restart, under its id', async () => {
    receiver.reply = () => 'hang';
    const { id, secret } = await user.expect(201, '/api/webhooks', { json: { url: receiver.url } });
    const accepted: string[] = [];
    for (let i = 0; i < 10; i++) {
      accepted.push((await user.expect(201, `/api/webhooks/${id}/test`, POST)).event_id);
    }
    await receiver.reached(1);
    await cloud.crash();
    receiver.reply = () => ({ status: 200 });
    const begun = receiver.received.splice(0).map((one) => one.id);
    await cloud.start();
    await reopen();
    await logOf(user, id, isDelivered(accepted.length));
    assert.deepEqual(
      receiver.received.map((one) => one.id),
      accepted,
      'in order, and the one that was under way again',
    );
    assert.deepEqual(begun, accepted.slice(0, 1));
    for (const one of receiver.received) assert.ok(await isGenuine(secret, one));
    await user.expect(200, `/api/webhooks/${id}`, { method: 'DELETE' });
  });

  test('while events come, kill -9 again and again: each that was accepted arrives', async () => {
    const { id } = await user.expect(201, '/api/webhooks', { json: { url: receiver.url } });
    const accepted = new Set<string>();
    for (let round = 0; round < 4; round++) {
      let isOver = false;
      const writer = async () => {
        while (!isOver) {
          try {
            accepted.add((await user.expect(201, `/api/webhooks/${id}/test`, POST)).event_id);
          } catch (error) {
            // The connection of a killed cloud; any other error fails the test.
            if (!(error instanceof TypeError)) throw error;
            return;
          }
        }
      };
      const writers = [writer(), writer(), writer()];
      await sleep(150 + 130 * round);
      await cloud.crash();
      isOver = true;
      await Promise.all(writers);
      await cloud.start();
      await reopen();
    }
    assert.ok(accepted.size >= 4, String(accepted.size));
    await logOf(user, id, (log) => log.every(({ state }) => state === 'delivered'));
    const arrived = new Set(receiver.received.map((one) => one.id));
    for (const event of accepted) assert.ok(arrived.has(event), event);
    await user.expect(200, `/api/webhooks/${id}`, { method: 'DELETE' });
  });

  test('what is malformed is refused, field by field', async () => {
    const wrong: unknown[] = [
      {},
      { url: '' },
      { url: 5 },
      { url: `https://example.org/${'a'.repeat(2048)}` },
      { url: 'https://u:p@example.org/' },
      { url: 'gopher://example.org/' },
      { url: receiver.url, events: [] },
      { url: receiver.url, events: ['vm.exploded'] },
      { url: receiver.url, events: 'vm.stopped' },
      { url: receiver.url, description: 'a'.repeat(201) },
    ];
    for (const json of wrong) await user.refused(400, 'invalid_request', ['/api/webhooks', { json }]);
    const { id } = await user.expect(201, '/api/webhooks', { json: { url: receiver.url } });
    const path = `/api/webhooks/${id}`;
    for (const since of ['yesterday', '', '2026-13-01 00:00:00', 5]) {
      await user.refused(400, 'invalid_request', [`${path}/recover`, { json: { since } }]);
    }
    for (const overlap_seconds of [-1, 86_401, 1.5, '1']) {
      await user.refused(400, 'invalid_request', [`${path}/rotate-secret`, { json: { overlap_seconds } }]);
    }
    await user.refused(400, 'invalid_cursor', [`${path}/deliveries?limit=1&cursor=x`]);
    await user.refused(400, 'invalid_request', [`${path}/deliveries?state=lost`]);
    await user.refused(404, 'delivery_not_found', [`${path}/deliveries/dlv-x/replay`, POST]);
    await user.expect(200, path, { method: 'PATCH', json: { enabled: false } });
    await user.refused(409, 'webhook_disabled', [`${path}/test`, POST]);
    await user.expect(200, path, { method: 'DELETE' });
  });

  test('an account has 1,000 deliveries of a webhook wait, and its neighbour is served', async () => {
    const failing = await WebhookReceiver.open();
    failing.reply = () => ({ status: 500 });
    const { id } = await user.expect(201, '/api/webhooks', { json: { url: failing.url } });
    const anyone = await CheckedClient.open(cloud.api);
    const other = anyone.as((await anyone.register()).api_key);
    const theirs = await other.expect(201, '/api/webhooks', { json: { url: receiver.url } });
    const counts = new Map<number, number>();
    let left = 1010;
    const flood = async () => {
      while (left-- > 0) {
        const { status, body } = await user.call(`/api/webhooks/${id}/test`, POST);
        counts.set(status, (counts.get(status) ?? 0) + 1);
        if (status === 503) assert.equal(body.code, 'overloaded');
      }
    };
    await Promise.all(Array.from({ length: 10 }, flood));
    assert.deepEqual([...counts].sort(), [
      [201, 1000],
      [503, 10],
    ]);
    assert.equal((await user.expect(200, `/api/webhooks/${id}`)).pending_deliveries, 1000);
    await other.expect(201, `/api/webhooks/${theirs.id}/test`, POST);
    await logOf(other, theirs.id, isDelivered(1));
    const changed = { method: 'PATCH', json: { enabled: false } };
    assert.equal((await user.expect(200, `/api/webhooks/${id}`, changed)).pending_deliveries, 0);
    await user.expect(200, `/api/webhooks/${id}`, { method: 'DELETE' });
    failing.close();
  });
});

test('without that setting loopback is refused when it is named, and when a delivery would go there', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'cloudlet-test-'));
  let cloud = await CloudProcess.start({ dataDir, env: { CLOUDLET_FETCH_ALLOW: '127.0.0.0/8' } });
  try {
    const { api_key } = await (await CheckedClient.open(cloud.api)).register();
    const own = async () => (await CheckedClient.open(cloud.api)).as(api_key);
    const { id } = await (await own()).expect(201, '/api/webhooks', { json: { url: receiver.url } });
    await cloud.stop();
    cloud = await CloudProcess.start({ dataDir });
    const user = await own();
    const urls = [receiver.url, receiver.url.replace('127.0.0.1', 'localhost'), 'http://[::ffff:127.0.0.1]/'];
    for (const url of urls) {
      for (const [path, method] of [
        ['/api/webhooks', 'POST'] as const,
        [`/api/webhooks/${id}`, 'PATCH'] as const,
      ]) {
        const { errors, hint } = await user.refused(400, 'invalid_request', [
          path,
          { method, json: { url } },
        ]);
        assert.equal(errors[0].field, 'url');
        assert.match(errors[0].message, /is not a public Internet address/);
        assert.match(hint, /CLOUDLET_FETCH_ALLOW/);
      }
    }
    // It is not known yet where an unresolvable name will lead.
    await user.expect(201, '/api/webhooks', { json: { url: 'https://hooks.invalid/' } });
    await user.expect(201, `/api/webhooks/${id}/test`, POST);
    const [delivery] = await logOf(user, id, (log) => (log[0]?.attempts.length ?? 0) > 0);
    assert.deepEqual([delivery?.state, delivery?.attempts[0]?.status], ['pending', null]);
    assert.match(delivery?.attempts[0]?.error ?? '', /is not a public Internet address/);
    assert.equal(receiver.received.length, 0);
  } finally {
    await cloud.stop();
    rmSync(dataDir, { recursive: true, force: true });
  }
});
