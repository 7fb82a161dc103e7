import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, test } from 'node:test';
import { isGenuine, WebhookReceiver } from '../../test/harness/webhook-receiver.ts';
import type { Principal } from '../calls/principal.ts';
import { type ErrorCode, isAppError } from '../platform/errors.ts';
import { by } from '../testing/account-fixture.ts';
import { openWebhookFixture, type WebhookFixture } from '../testing/webhook-fixture.ts';
import { MAX_WEBHOOKS } from './webhooks.ts';

const URL = 'https://example.org/hook';

let fixture: WebhookFixture;
let cloud: ReturnType<WebhookFixture['open']>;
let ann: Principal;
let accounts = 0;
before(async () => {
  fixture = await openWebhookFixture();
});
after(() => fixture.close());
beforeEach(async () => {
  ann = await fixture.newPrincipal(`ann${++accounts}`);
  cloud = fixture.open();
});
afterEach(() => cloud.dispatcher.close());

const code = (wanted: ErrorCode) => (error: unknown) => isAppError(error, wanted);

test('a webhook is made, read, changed and removed; its secret is sealed and shown on demand', async () => {
  const { secret, ...made } = await cloud.webhooks.create(by(ann), { url: URL, description: 'mine' });
  assert.deepEqual(made.events, ['*']);
  assert.deepEqual(await cloud.webhooks.describe(ann, made.id), made);
  assert.equal((await cloud.webhooks.secret(ann, made.id)).secret, secret);
  const row = await fixture.metadata.get<{ text: string }>(
    'SELECT hex(sealed_secret) AS text FROM webhooks WHERE webhook_id = ?',
    made.id,
  );
  const hex = row?.text.toLowerCase() ?? '';
  for (const part of [Buffer.from(secret), Buffer.from(secret.slice(6), 'base64')]) {
    assert.ok(hex !== '' && !hex.includes(part.toString('hex')));
  }
  const url = 'http://example.org/other?a=b';
  const changed = await cloud.webhooks.change(by(ann), made.id, { url, events: ['vm.failed', 'vm.failed'] });
  assert.deepEqual(changed, { ...made, url, events: ['vm.failed'] });
  const disabled = await cloud.webhooks.change(by(ann), made.id, { enabled: false });
  assert.deepEqual([disabled.enabled, disabled.disabled_reason?.code], [false, 'owner']);
  const enabled = await cloud.webhooks.change(by(ann), made.id, { enabled: true, description: '' });
  assert.deepEqual(enabled, { ...changed, description: '' });
  await cloud.webhooks.remove(by(ann), made.id);
  await assert.rejects(cloud.webhooks.describe(ann, made.id), code('webhook_not_found'));
});

test('addresses that cannot be right are refused, on creation and on change', async () => {
  const { id } = await cloud.webhooks.create(by(ann), { url: URL });
  const wrong = [
    ...['', 'example.org', '/hook', 'ftp://example.org/', 'javascript:alert(1)', 'file:///etc/passwd'],
    ...['https://u:p@example.org/', 'https://u@example.org/', 'https://example.org/#a', 'https://'],
    ...['https://example.org/a b', ' https://example.org/', 'https://example.org/\n', 'http://[::1'],
  ];
  for (const url of wrong) {
    await assert.rejects(cloud.webhooks.create(by(ann), { url }), code('invalid_request'), url);
    await assert.rejects(cloud.webhooks.change(by(ann), id, { url }), code('invalid_request'), url);
  }
  await assert.rejects(
    cloud.webhooks.create(by(ann), { url: URL, description: 'a\0' }),
    code('invalid_request'),
  );
  assert.equal((await cloud.webhooks.describe(ann, id)).url, URL);
});

test('30 at once: as many as an account may have, and one more when one is gone', async () => {
  const outcomes = await Promise.allSettled(
    Array.from({ length: 30 }, () => cloud.webhooks.create(by(ann), { url: URL })),
  );
  const made = outcomes.filter((outcome) => outcome.status === 'fulfilled');
  assert.equal(made.length, MAX_WEBHOOKS);
  for (const outcome of outcomes) {
    if (outcome.status === 'rejected') assert.ok(isAppError(outcome.reason, 'too_many_webhooks'));
  }
  await cloud.webhooks.remove(by(ann), made[0]?.value.id ?? '');
  await cloud.webhooks.create(by(ann), { url: URL });
  const other = await fixture.newPrincipal(`other${accounts}`);
  await cloud.webhooks.create(by(other), { url: URL });
});

test("another account's webhook and delivery are not there", async () => {
  const { id } = await cloud.webhooks.create(by(ann), { url: URL });
  const { id: deliveryId } = await cloud.deliveries.test(by(ann), id);
  const eve = await fixture.newPrincipal(`eve${accounts}`);
  const own = await cloud.webhooks.create(by(eve), { url: URL });
  const missing = code('webhook_not_found');
  for (const other of [id, 'whk-0', '', own.id.replace(/.$/, (last) => (last === '0' ? '1' : '0'))]) {
    await assert.rejects(cloud.webhooks.describe(eve, other), missing);
    await assert.rejects(cloud.webhooks.change(by(eve), other, { enabled: false }), missing);
    await assert.rejects(cloud.webhooks.remove(by(eve), other), missing);
    await assert.rejects(cloud.webhooks.secret(eve, other), missing);
    await assert.rejects(cloud.webhooks.rotateSecret(by(eve), other, 0), missing);
    await assert.rejects(cloud.deliveries.test(by(eve), other), missing);
    await assert.rejects(cloud.deliveries.recover(by(eve), other, '2026-01-01 00:00:00'), missing);
    await assert.rejects(cloud.deliveries.list(eve, other, { before: 0, limit: 1 }), missing);
    await assert.rejects(cloud.deliveries.replay(by(eve), { webhookId: other, deliveryId }), missing);
  }
  const mixed = { webhookId: own.id, deliveryId };
  await assert.rejects(cloud.deliveries.replay(by(eve), mixed), code('delivery_not_found'));
  assert.equal((await cloud.webhooks.describe(ann, id)).enabled, true);
});

test('after a rotation both secrets sign until the old one is over, and then it is forgotten', async () => {
  const receiver = await WebhookReceiver.open();
  try {
    cloud.dispatcher.start();
    const { id, secret: first } = await cloud.webhooks.create(by(ann), { url: receiver.url });
    const send = async () => {
      await cloud.deliveries.test(by(ann), id);
      await cloud.dispatcher.whenIdle();
      const got = receiver.received.at(-1);
      assert.ok(got !== undefined);
      return got;
    };
    const overlapMs = 86_400_000;
    const rotated = await cloud.webhooks.rotateSecret(by(ann), id, overlapMs);
    assert.equal(rotated.previous_secret, first);
    assert.deepEqual(await cloud.webhooks.secret(ann, id), rotated);
    const both = await send();
    assert.equal(both.signature.split(' ').length, 2);
    for (const secret of [first, rotated.secret]) assert.ok(await isGenuine(secret, both));
    fixture.clock.advance(overlapMs);
    const after = await send();
    assert.equal(after.signature.split(' ').length, 1);
    assert.ok(!(await isGenuine(first, after)) && (await isGenuine(rotated.secret, after)));
    assert.equal((await cloud.webhooks.secret(ann, id)).previous_secret, null);
    await cloud.sweeper.sweep();
    const count = 'SELECT count(*) AS n FROM webhooks WHERE sealed_old_secret IS NOT NULL';
    assert.deepEqual(await fixture.metadata.get(count), { n: 0 });
    const now = await cloud.webhooks.rotateSecret(by(ann), id, 0);
    assert.equal(now.previous_secret, null);
    assert.equal((await send()).signature.split(' ').length, 1);
  } finally {
    receiver.close();
  }
});

test('a replay sends what was delivered again, as it was; the log shows every attempt', async () => {
  const receiver = await WebhookReceiver.open();
  try {
    cloud.dispatcher.start();
    const { id } = await cloud.webhooks.create(by(ann), { url: receiver.url, events: ['credits.low'] });
    const { id: deliveryId } = await cloud.deliveries.test(by(ann), id);
    await cloud.dispatcher.whenIdle();
    const answer = await cloud.deliveries.replay(by(ann), { webhookId: id, deliveryId });
    assert.deepEqual([answer.state, answer.attempts.length], ['pending', 1]);
    await cloud.dispatcher.whenIdle();
    const [first, second] = receiver.received;
    assert.deepEqual([second?.id, second?.body], [first?.id, first?.body]);
    const [delivery, ...others] = await cloud.log(ann, id);
    assert.equal(others.length, 0);
    assert.deepEqual([delivery?.state, delivery?.attempts.length], ['delivered', 2]);
  } finally {
    receiver.close();
  }
});

test('the log is paged newest first', async () => {
  const { id } = await cloud.webhooks.create(by(ann), { url: URL });
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.unshift((await cloud.deliveries.test(by(ann), id)).id);
  const found: string[] = [];
  let before = 0;
  for (;;) {
    let count = 0;
    for await (const entry of await cloud.deliveries.list(ann, id, { before, limit: 2 })) {
      found.push(entry.toJSON().id);
      before = entry.id;
      count++;
    }
    if (count < 2) break;
  }
  assert.deepEqual(found, made);
});
