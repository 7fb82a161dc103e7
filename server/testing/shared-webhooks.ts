/** Webhooks for the tests of a file: a start of Cloudlet, a receiver and an account for each test. */
import { after, afterEach, before, beforeEach } from 'node:test';
import { type Received, WebhookReceiver } from '../../test/harness/webhook-receiver.ts';
import type { Principal } from '../calls/principal.ts';
import { by } from './account-fixture.ts';
import { openWebhookFixture, type WebhookFixture, type WebhookOptions } from './webhook-fixture.ts';

export interface SharedWebhooks {
  readonly fixture: WebhookFixture;
  readonly cloud: ReturnType<WebhookFixture['open']>;
  readonly receiver: WebhookReceiver;
  readonly ann: Principal;
}

/** Calls `take` before each test. */
export function sharedWebhooks(
  take: (shared: SharedWebhooks) => unknown,
  options: WebhookOptions = {},
): void {
  let fixture: WebhookFixture;
  let shared: SharedWebhooks;
  let accounts = 0;
  before(async () => {
    fixture = await openWebhookFixture();
  });
  after(() => fixture.close());
  beforeEach(async () => {
    const receiver = await WebhookReceiver.open();
    const ann = await fixture.newPrincipal(`ann${++accounts}`);
    shared = { fixture, receiver, ann, cloud: fixture.open(options) };
    shared.cloud.dispatcher.start();
    await take(shared);
  });
  afterEach(async () => {
    await shared.cloud.dispatcher.close();
    shared.receiver.close();
    // Unsent deliveries would go to the next receiver on the same port.
    await fixture.metadata.commit([{ sql: 'DELETE FROM webhooks', params: [] }]);
  });
}

/** A webhook of the account for the receiver. */
export function newWebhook(
  { cloud, ann, receiver }: SharedWebhooks,
  { url = receiver.url, events }: { url?: string; events?: ['*'] | ['credits.low'] } = {},
) {
  return cloud.webhooks.create(by(ann), { url, ...(events && { events }) });
}

/** The numbers of events in the order in which they arrived. */
export function numbersOf(received: readonly Received[]): number[] {
  return received.map(({ body }) => JSON.parse(body).data.number as number);
}
