import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Principal } from '../calls/principal.ts';
import { by } from '../testing/account-fixture.ts';
import { newWebhook, type SharedWebhooks, sharedWebhooks } from '../testing/shared-webhooks.ts';
import type { WebhookFixture } from '../testing/webhook-fixture.ts';
import { eventStatements } from './events-store.ts';

const DAY_MS = 24 * 3_600_000;
const KEPT = 10;

let fixture: WebhookFixture;
let cloud: SharedWebhooks['cloud'];
let receiver: SharedWebhooks['receiver'];
let ann: Principal;
let webhookId: string;
sharedWebhooks(
  async (shared) => {
    ({ fixture, cloud, receiver, ann } = shared);
    webhookId = (await newWebhook(shared)).id;
  },
  { keptDeliveries: KEPT, maxPending: 1000 },
);

const send = async () => {
  await fixture.emit(ann);
  await cloud.dispatcher.whenIdle();
};
const eventsKept = async () => {
  const sql = 'SELECT count(*) AS n FROM webhook_events WHERE account_id = ?';
  return (await fixture.metadata.get<{ n: number }>(sql, ann.accountId))?.n;
};

test('after 30 days an event, its deliveries and attempts are gone, unless it still waits', async () => {
  await send();
  fixture.clock.advance(29 * DAY_MS);
  await send();
  await cloud.sweeper.sweep();
  assert.equal((await cloud.log(ann, webhookId)).length, 2);
  fixture.clock.advance(2 * DAY_MS);
  await cloud.sweeper.sweep();
  assert.equal((await cloud.log(ann, webhookId)).length, 1);
  assert.equal(await eventsKept(), 1);
  assert.deepEqual(await fixture.metadata.get('SELECT count(*) AS n FROM webhook_attempts'), { n: 1 });
  receiver.reply = () => ({ status: 500 });
  await send();
  await cloud.dispatcher.close();
  fixture.clock.advance(40 * DAY_MS);
  await cloud.sweeper.sweep();
  const left = await cloud.log(ann, webhookId);
  assert.deepEqual(
    left.map(({ state }) => state),
    ['pending'],
  );
});

test('of many deliveries the newest are kept, and what still waits', async () => {
  receiver.reply = () => ({ status: 500 });
  await send();
  receiver.reply = () => ({ status: 200 });
  for (let i = 0; i < KEPT + 5; i++) await send();
  const before = await cloud.log(ann, webhookId);
  await cloud.sweeper.sweep();
  const ids = (log: typeof before) => log.map(({ id }) => id);
  const kept = await cloud.log(ann, webhookId);
  assert.deepEqual(ids(kept), [...ids(before).slice(0, KEPT), ...ids(before).slice(-1)]);
  assert.equal(kept.at(-1)?.state, 'pending');
  assert.equal(await eventsKept(), kept.length);
});

test('of a flood of deliveries the newest are kept without a sweep', async () => {
  await cloud.webhooks.create(by(ann), { url: receiver.url });
  const flood = { accountId: ann.accountId, type: 'vm.stopped', data: {}, at: fixture.clock.now() } as const;
  for (let count = 0; count < 6; count++) {
    await fixture.metadata.commit(Array.from({ length: 50 }, () => eventStatements(flood)).flat());
    await cloud.dispatcher.whenIdle();
  }
  const sql = `SELECT count(*) AS n FROM webhook_deliveries
               WHERE webhook IN (SELECT id FROM webhooks WHERE account_id = ?)`;
  const kept = await fixture.metadata.get<{ n: number }>(sql, ann.accountId);
  assert.ok((kept?.n ?? 0) <= 2 * (KEPT + 100), `${kept?.n} of 600 are kept`);
});

test('of many replays the newest attempts are kept, and the whole response to the last', async () => {
  receiver.reply = () => ({ status: 200, body: 'x'.repeat(1000) });
  const { id: deliveryId } = await cloud.deliveries.test(by(ann), webhookId);
  await cloud.dispatcher.whenIdle();
  for (let i = 0; i < 15; i++) {
    fixture.clock.advance(1000);
    await cloud.deliveries.replay(by(ann), { webhookId, deliveryId });
    await cloud.dispatcher.whenIdle();
  }
  const [delivery] = await cloud.log(ann, webhookId);
  assert.equal(delivery?.attempts.length, 10);
  const lengths = delivery?.attempts.map(({ response }) => response?.length);
  assert.deepEqual(lengths, [...Array.from({ length: 9 }, () => 100), 1000]);
  assert.equal(
    delivery?.attempts.at(-1)?.at,
    new Date(fixture.clock.now()).toISOString().slice(0, 19).replace('T', ' '),
  );
});

test('what belonged to a closed account goes, events that nobody wanted as well', async () => {
  await send();
  await cloud.webhooks.change(by(ann), webhookId, { events: ['credits.low'] });
  await send();
  await cloud.sweeper.sweep();
  assert.equal((await cloud.log(ann, webhookId)).length, 1);
  assert.equal(await eventsKept(), 1);
  const closing = 'UPDATE accounts SET closed_at = 1 WHERE id = ?';
  await fixture.metadata.commit([{ sql: closing, params: [ann.accountId] }]);
  await cloud.sweeper.sweep();
  const left = 'SELECT count(*) AS n FROM webhooks w JOIN accounts a ON a.id = w.account_id WHERE a.id = ?';
  assert.deepEqual(await fixture.metadata.get(left, ann.accountId), { n: 0 });
});
