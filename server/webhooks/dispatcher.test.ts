import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isGenuine, type Received, WebhookReceiver } from '../../test/harness/webhook-receiver.ts';
import type { Principal } from '../calls/principal.ts';
import { AppError } from '../platform/errors.ts';
import { by } from '../testing/account-fixture.ts';
import { newWebhook, numbersOf, type SharedWebhooks, sharedWebhooks } from '../testing/shared-webhooks.ts';
import type { WebhookFixture } from '../testing/webhook-fixture.ts';
import { eventStatements } from './events-store.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

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

test('an event of the commit arrives once, signed, in order, at those who wanted it', async () => {
  const { id, secret } = await newHook();
  await newHook(`${receiver.url}/low`, ['credits.low']);
  const first = await fixture.emit(ann);
  const second = await fixture.emit(ann, 'credits.low');
  const third = await fixture.emit(ann);
  await cloud.dispatcher.whenIdle();
  await passed(1000);
  const [all, low] = [/hook$/, /low$/].map((path) => receiver.received.filter((one) => path.test(one.path)));
  assert.deepEqual([numbers(all), numbers(low)], [[first, second, third], [second]]);
  const [got] = all ?? [];
  assert.ok(got !== undefined && (await isGenuine(secret, got)));
  assert.equal(got.contentType, 'application/json');
  const at = new Date(Number(got.timestamp) * 1000).toISOString();
  assert.deepEqual(JSON.parse(got.body), { type: 'vm.stopped', timestamp: at, data: { number: first } });
  const log = await cloud.log(ann, id);
  assert.deepEqual(
    log.map(({ event_id, state, attempts }) => [event_id, state, attempts.map(({ status }) => status)]),
    [...(all ?? [])].reverse().map((one) => [one.id, 'delivered', [204]]),
  );
});

test('an event of a commit that is rejected never was; without a webhook none is kept', async () => {
  await fixture.emit(ann);
  await newHook();
  const event = { accountId: ann.accountId, type: 'vm.failed', data: {}, at: fixture.clock.now() } as const;
  const refused = { sql: 'UPDATE accounts SET id = id WHERE id = -1', params: [], expectChanges: 1 };
  await assert.rejects(fixture.metadata.commit([...eventStatements(event), refused]));
  await cloud.dispatcher.whenIdle();
  assert.equal(receiver.received.length, 0);
});

test('a failure is tried again on schedule, under the same id and with a new timestamp, and then ends', async () => {
  const { id, secret } = await newHook();
  receiver.reply = () => ({ status: 500, body: 'out of order' });
  await fixture.emit(ann);
  await cloud.dispatcher.whenIdle();
  const steps = [5, 300, 1800, 7200, 18_000, 36_000, 36_000];
  for (const [i, seconds] of steps.entries()) {
    await passed(seconds * 1000 - 1);
    assert.equal(receiver.received.length, i + 1, `before ${seconds} s`);
    await passed(seconds * 101 + 1);
    assert.equal(receiver.received.length, i + 2, `after ${seconds} s`);
  }
  await passed(10 * DAY_MS);
  assert.equal(receiver.received.length, 8);
  assert.equal(new Set(receiver.received.map((one) => one.id)).size, 1);
  assert.equal(new Set(receiver.received.map(({ timestamp }) => timestamp)).size, 8);
  for (const one of receiver.received) assert.ok(await isGenuine(secret, one));
  const [delivery] = await cloud.log(ann, id);
  assert.deepEqual([delivery?.state, delivery?.next_attempt_at], ['failed', null]);
  assert.deepEqual(
    delivery?.attempts.map(({ status, response, error }) => [status, response, error]),
    Array.from({ length: 8 }, () => [500, 'out of order', null]),
  );
});

test('one event that fails holds up no other, and a success later ends its retries', async () => {
  await newHook();
  const bad = await fixture.emit(ann);
  const good = await fixture.emit(ann);
  let isRepaired = false;
  receiver.reply = ({ body }) => ({
    status: JSON.parse(body).data.number === bad && !isRepaired ? 503 : 200,
  });
  await cloud.dispatcher.whenIdle();
  assert.deepEqual(numbers(), [bad, good]);
  isRepaired = true;
  await passed(6000);
  await passed(DAY_MS);
  assert.deepEqual(numbers(), [bad, good, bad]);
});

test('a webhook that does not answer holds up no other', async () => {
  const slow = await WebhookReceiver.open();
  slow.reply = () => 'hang';
  for (let i = 0; i < 3; i++) await newHook(slow.url);
  await newHook();
  for (let i = 0; i < 5; i++) await fixture.emit(ann);
  cloud.dispatcher.wake();
  await receiver.reached(5);
  assert.equal(slow.received.length, 3, 'one attempt at a time each');
  await cloud.dispatcher.close();
  slow.close();
});

test('one account takes at most 4 of 16 slots', async () => {
  const slow = await WebhookReceiver.open();
  slow.reply = () => 'hang';
  for (let i = 0; i < 6; i++) await newHook(`${slow.url}/ann`);
  await fixture.emit(ann);
  const others = [];
  for (let i = 0; i < 4; i++) {
    const other = await fixture.newPrincipal(`other${ann.accountId}-${i}`);
    for (let k = 0; k < 4; k++) await cloud.webhooks.create(by(other), { url: slow.url });
    others.push(other);
  }
  cloud.dispatcher.wake();
  await slow.reached(4);
  for (const other of others) await fixture.emit(other);
  cloud.dispatcher.wake();
  await slow.reached(16);
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(slow.received.length, 16);
  assert.equal(slow.received.filter(({ path }) => path.endsWith('/ann')).length, 4);
  await cloud.dispatcher.close();
  slow.close();
});

test('Retry-After is waited for, by other events of the webhook as well', async () => {
  await newHook();
  receiver.reply = () => ({ status: 429, headers: { 'retry-after': '600' } });
  await fixture.emit(ann);
  await cloud.dispatcher.whenIdle();
  await fixture.emit(ann);
  await passed(590_000);
  assert.equal(receiver.received.length, 1);
  receiver.reply = () => ({ status: 200 });
  await passed(11_000);
  assert.equal(receiver.received.length, 3);
});

test('410 disables at once; what waits and what comes is kept as failed and can be recovered', async () => {
  const { id } = await newHook();
  receiver.reply = () => ({ status: 410 });
  const since = '2026-01-01T00:00:00Z';
  const lost = [await fixture.emit(ann), await fixture.emit(ann)];
  await cloud.dispatcher.whenIdle();
  lost.push(await fixture.emit(ann));
  await passed(DAY_MS);
  assert.equal(receiver.received.length, 1);
  const { enabled, disabled_reason } = await cloud.webhooks.describe(ann, id);
  assert.deepEqual([enabled, disabled_reason?.code], [false, 'gone']);
  const log = await cloud.log(ann, id);
  assert.deepEqual(
    log.map(({ state, reason, attempts }) => [state, reason, attempts.length]),
    [
      ['failed', 'the webhook was disabled', 0],
      ['failed', 'the webhook was disabled', 0],
      ['failed', 'the webhook was disabled', 1],
    ],
  );
  const refused = (error: unknown) => error instanceof AppError && error.code === 'webhook_disabled';
  await assert.rejects(cloud.deliveries.recover(by(ann), id, since), refused);
  await cloud.webhooks.change(by(ann), id, { enabled: true });
  receiver.reply = () => ({ status: 200 });
  const [first] = receiver.received.splice(0);
  assert.deepEqual(await cloud.deliveries.recover(by(ann), id, since), { recovered: 3, remaining: 0 });
  await cloud.dispatcher.whenIdle();
  assert.deepEqual(numbers(), lost);
  assert.equal(receiver.received[0]?.id, first?.id);
  assert.deepEqual(await cloud.deliveries.recover(by(ann), id, since), { recovered: 0, remaining: 0 });
});

test('five days of nothing but failures disable; one success in between does not', async () => {
  const { id } = await newHook();
  receiver.reply = () => ({ status: 500 });
  for (let day = 0; day < 4; day++) {
    await fixture.emit(ann);
    await passed(DAY_MS);
  }
  receiver.reply = () => ({ status: 200 });
  await fixture.emit(ann);
  await passed(1000);
  assert.equal((await cloud.webhooks.describe(ann, id)).failing_since, null);
  receiver.reply = () => ({ status: 500 });
  for (let day = 0; day < 5; day++) {
    await fixture.emit(ann);
    await cloud.dispatcher.whenIdle();
    assert.equal((await cloud.webhooks.describe(ann, id)).enabled, true, `day ${day}`);
    await passed(DAY_MS);
  }
  const { enabled, disabled_reason } = await cloud.webhooks.describe(ann, id);
  assert.deepEqual([enabled, disabled_reason?.code], [false, 'failing']);
  assert.ok((await cloud.log(ann, id)).every(({ state }) => state !== 'pending'));
  const { failing_since } = await cloud.webhooks.change(by(ann), id, { enabled: true });
  assert.equal(failing_since, null);
});

test('an address that may not be reached, and one where nobody is, are named in the log', async () => {
  const { id } = await newHook();
  const nowhere = await WebhookReceiver.open();
  const other = await newHook(nowhere.url);
  nowhere.close();
  await cloud.dispatcher.close();
  cloud = fixture.open({ allowed: [] });
  cloud.dispatcher.start();
  await fixture.emit(ann);
  await cloud.dispatcher.whenIdle();
  assert.equal(receiver.received.length, 0);
  const [refused] = await cloud.log(ann, id);
  assert.equal(refused?.attempts[0]?.status, null);
  assert.match(
    refused?.attempts[0]?.error ?? '',
    /^127\.0\.0\.1 is not a public Internet address outside this host$/,
  );
  assert.equal(refused?.state, 'pending');
  await cloud.dispatcher.close();
  cloud = fixture.open();
  cloud.dispatcher.start();
  await passed(6000);
  const [failed] = await cloud.log(ann, other.id);
  assert.match(failed?.attempts.at(-1)?.error ?? '', /ECONNREFUSED/);
});

test('a redirect is not followed; of a long answer the beginning is kept', async () => {
  const { id } = await newHook();
  receiver.reply = () => ({ status: 302, headers: { location: '/elsewhere' } });
  await fixture.emit(ann);
  await cloud.dispatcher.whenIdle();
  receiver.reply = () => ({ status: 200, body: `\0ü${'ü'.repeat(200_000)}` });
  await passed(6000);
  assert.deepEqual(
    receiver.received.map(({ path }) => path),
    ['/hook', '/hook'],
  );
  const [delivery] = await cloud.log(ann, id);
  assert.deepEqual(
    delivery?.attempts.map(({ status, response }) => [status, response]),
    [
      [302, ''],
      [200, `\ufffd${'ü'.repeat(511)}`],
    ],
  );
});

test('a start goes on where a kill ended: an attempt without its commit is repeated under its id', async () => {
  const { id } = await newHook();
  await fixture.emit(ann);
  receiver.reply = () => 'hang';
  cloud.dispatcher.wake();
  await receiver.reached(1);
  await cloud.dispatcher.close();
  assert.deepEqual(cloud.reports, []);
  const unsent = await fixture.emit(ann);
  receiver.reply = () => ({ status: 200 });
  cloud = fixture.open();
  cloud.dispatcher.start();
  await cloud.dispatcher.whenIdle();
  const [first, second, third] = receiver.received;
  assert.equal(first?.id, second?.id);
  assert.equal(numbers([third as Received])[0], unsent);
  assert.ok((await cloud.log(ann, id)).every(({ state }) => state === 'delivered'));
});

test('a result that cannot be stored is no reason to send the same again at once', async () => {
  await cloud.dispatcher.close();
  let isFull = false;
  cloud = fixture.open({
    wrapMetadata: (metadata) => ({
      get: (sql, ...params) => metadata.get(sql, ...params),
      all: (sql, ...params) => metadata.all(sql, ...params),
      commit: (statements) =>
        isFull && statements.some(({ sql }) => sql.includes('webhook_attempts'))
          ? Promise.reject(new AppError('out_of_space', 'The disk is full'))
          : metadata.commit(statements),
      snapshot: metadata.snapshot.bind(metadata),
      close: () => metadata.close(),
    }),
  });
  cloud.dispatcher.start();
  const { id } = await newHook();
  isFull = true;
  await fixture.emit(ann);
  await cloud.dispatcher.whenIdle();
  await passed(59_000);
  assert.equal(receiver.received.length, 1);
  assert.match(
    cloud.reports.join('\n'),
    /^storing the result of a webhook delivery failed.*The disk is full$/,
  );
  isFull = false;
  await passed(2000);
  assert.equal(receiver.received.length, 2);
  assert.equal((await cloud.log(ann, id))[0]?.state, 'delivered');
});

test('a wall clock that is set back by a month delays nothing by more than its schedule', async () => {
  await newHook();
  receiver.reply = () => ({ status: 500 });
  await fixture.emit(ann);
  await cloud.dispatcher.whenIdle();
  fixture.clock.jump(-30 * DAY_MS);
  await passed(1000);
  assert.equal(receiver.received.length, 2);
  fixture.clock.jump(30 * DAY_MS);
});

test('a deleted webhook gets no more, nor does one of a closed account', async () => {
  const { id } = await newHook();
  await newHook(`${receiver.url}/kept`);
  await fixture.emit(ann);
  await cloud.webhooks.remove(by(ann), id);
  await cloud.dispatcher.whenIdle();
  assert.deepEqual(
    receiver.received.map(({ path }) => path),
    ['/hook/kept'],
  );
  receiver.reply = () => ({ status: 500 });
  await fixture.emit(ann);
  await cloud.dispatcher.whenIdle();
  const closing = 'UPDATE accounts SET closed_at = 1 WHERE id = ?';
  await fixture.metadata.commit([{ sql: closing, params: [ann.accountId] }]);
  await fixture.emit(ann);
  await passed(DAY_MS);
  assert.equal(receiver.received.length, 2);
});

test('of two nodes the one with the lease delivers, and the other once it has it', async () => {
  await newHook();
  let holder = 'other';
  const other = fixture.open({ mayBegin: async () => holder === 'other' });
  const own = fixture.open({ mayBegin: async () => holder === 'own' });
  await cloud.dispatcher.close();
  for (const { dispatcher } of [own, other]) dispatcher.start();
  const first = await fixture.emit(ann);
  await own.dispatcher.whenIdle();
  assert.deepEqual(numbers(), []);
  await other.dispatcher.whenIdle();
  assert.deepEqual(numbers(), [first]);
  holder = 'own';
  const second = await fixture.emit(ann);
  await other.dispatcher.whenIdle();
  assert.deepEqual(numbers(), [first]);
  await own.dispatcher.whenIdle();
  assert.deepEqual(numbers(), [first, second]);
  for (const { dispatcher } of [own, other]) await dispatcher.close();
});
