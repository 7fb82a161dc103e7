/** The maximum backlog of an account, with another account beside it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Received, WebhookReceiver } from '../../test/harness/webhook-receiver.ts';
import type { Principal } from '../calls/principal.ts';
import { AppError } from '../platform/errors.ts';
import { by } from '../testing/account-fixture.ts';
import { newWebhook, numbersOf, type SharedWebhooks, sharedWebhooks } from '../testing/shared-webhooks.ts';
import type { WebhookFixture } from '../testing/webhook-fixture.ts';
import { eventStatements } from './events-store.ts';

/** As in the fixture. */
const MOST = 50;

let shared: SharedWebhooks;
let fixture: WebhookFixture;
let cloud: SharedWebhooks['cloud'];
let receiver: SharedWebhooks['receiver'];
let ann: Principal;
sharedWebhooks((made) => {
  shared = made;
  ({ fixture, cloud, receiver, ann } = made);
});

const newHook = (url = receiver.url, events?: ['*'] | ['credits.low']) =>
  newWebhook(shared, { url, ...(events && { events }) });
const numbers = (all: readonly Received[] = receiver.received) => numbersOf(all);
const passed = async (ms: number) => {
  fixture.clock.advance(ms);
  await cloud.dispatcher.whenIdle();
};

test('of a flood for a receiver that fails the newest wait; the rest is shown, and sent when there is room', async () => {
  const bob = await fixture.newPrincipal(`bob${ann.accountId}`);
  const other = await WebhookReceiver.open();
  const theirs = await cloud.webhooks.create(by(bob), { url: other.url });
  const { id } = await newHook();
  receiver.reply = () => ({ status: 500 });
  for (let count = 0; count < MOST + 12; count++) await fixture.emit(ann);
  const seen = await fixture.emit(bob);
  await passed(1000);
  assert.deepEqual(numbers(other.received), [seen]);
  const log = await cloud.log(ann, id);
  const [waiting, failed] = [log.slice(0, MOST), log.slice(MOST)];
  assert.deepEqual([...new Set(waiting.map(({ state }) => state))], ['pending']);
  assert.equal(failed.length, 12);
  for (const { state, reason, attempts } of failed) {
    assert.deepEqual([state, attempts], ['failed', []]);
    assert.match(reason ?? '', /more than 50 deliveries are pending/);
  }
  assert.equal((await cloud.webhooks.describe(ann, id)).pending_deliveries, MOST);
  assert.equal((await cloud.webhooks.describe(bob, theirs.id)).pending_deliveries, 0);
  const overloaded = (error: unknown) => error instanceof AppError && error.code === 'overloaded';
  await assert.rejects(cloud.deliveries.test(by(ann), id), overloaded);
  const deliveryId = failed[0]?.id ?? '';
  await assert.rejects(cloud.deliveries.replay(by(ann), { webhookId: id, deliveryId }), overloaded);
  const since = '1970-01-01 00:00:00';
  assert.deepEqual(await cloud.deliveries.recover(by(ann), id, since), { recovered: 0, remaining: 12 });
  receiver.reply = () => ({ status: 200 });
  await passed(10_000);
  assert.deepEqual(await cloud.deliveries.recover(by(ann), id, since), { recovered: 12, remaining: 0 });
  await passed(0);
  assert.deepEqual([...new Set((await cloud.log(ann, id)).map(({ state }) => state))], ['delivered']);
  other.close();
});

test('many tests at once make no more wait than may', async () => {
  const { id } = await newHook();
  receiver.reply = () => ({ status: 500 });
  const all = await Promise.allSettled(Array.from({ length: 80 }, () => cloud.deliveries.test(by(ann), id)));
  assert.equal(all.filter(({ status }) => status === 'fulfilled').length, MOST);
  assert.equal((await cloud.webhooks.describe(ann, id)).pending_deliveries, MOST);
});

test('a flood of events keeps no delivery waiting', async () => {
  await cloud.dispatcher.close();
  const bob = await fixture.newPrincipal(`bob${ann.accountId}`);
  const theirs = await cloud.webhooks.create(by(bob), { url: receiver.url });
  await cloud.deliveries.test(by(bob), theirs.id);
  await newHook(`${receiver.url}/low`, ['credits.low']);
  const flood = { accountId: ann.accountId, type: 'vm.stopped', data: {}, at: fixture.clock.now() } as const;
  await fixture.metadata.commit(Array.from({ length: 3000 }, () => eventStatements(flood)).flat());
  let left: unknown;
  const counted = new Promise<void>((resolve) => {
    receiver.reply = () => {
      left ??= fixture.metadata.get('SELECT count(*) AS n FROM webhook_events WHERE is_pending = 1');
      resolve();
      return { status: 200 };
    };
  });
  cloud = fixture.open();
  cloud.dispatcher.start();
  await counted;
  const { n } = (await left) as { n: number };
  assert.ok(n > 0, 'bob waited for the whole flood');
});
