/** Webhooks, by id or URL. */
import type { Cloud, NewWebhook, Webhook } from '../../sdk/index.ts';
import type { Command } from '../command.ts';
import { UsageError } from '../failures.ts';
import { about, all, assertMeant, find, linesOf, YES } from '../resources.ts';

const findWebhook = (cloud: Cloud, word: string) =>
  find(
    cloud.listWebhooks(),
    { noun: 'webhook', listedBy: 'webhook ls', namesOf: ({ id, url }) => [id, url] },
    word,
  );
const STATES = ['pending', 'delivered', 'failed'] as const;
const stateOf = ({ enabled, failing_since, pending_deliveries }: Webhook) => {
  if (!enabled) return 'disabled';
  return failing_since === null ? 'ok' : `failing since ${failing_since}, ${pending_deliveries} pending`;
};

export const WEBHOOK_COMMANDS: readonly Command[] = [
  {
    name: 'webhook ls',
    words: '',
    summary: 'list the webhooks',
    run: async ({ session, output }) => {
      const webhooks = await all(session().cloud.listWebhooks());
      output.table(webhooks, ['URL', 'EVENTS', 'STATE', 'ID'], (webhook: Webhook) => {
        return [webhook.url, webhook.events.join(' '), stateOf(webhook), webhook.id];
      });
    },
  },
  {
    name: 'webhook create',
    words: 'URL',
    summary: 'create a webhook and print its signing secret, once',
    options: {
      event: { value: 'TYPE', many: true, summary: 'event to send, such as vm.failed; default: all' },
      description: { value: 'TEXT', summary: 'description' },
    },
    run: async ({ session, output, options, words: [url = ''] }) => {
      const [events, description] = [options.list('event'), options.text('description')];
      const made = await session().cloud.createWebhook({
        url,
        // The cloud validates the events.
        ...(events.length > 0 && { events: events as NonNullable<NewWebhook['events']> }),
        ...(description !== undefined && { description }),
      });
      output.one(made, () => [`${made.id}`, `secret ${made.secret}`]);
    },
  },
  {
    name: 'webhook enable',
    words: 'WEBHOOK',
    summary: 'enable a webhook',
    run: about(findWebhook, async ({ id, url }, { cloud, output }) => {
      const changed = await cloud.changeWebhook(id, { enabled: true });
      output.one(changed, () => [`${url} is enabled`]);
    }),
  },
  {
    name: 'webhook disable',
    words: 'WEBHOOK',
    summary: 'disable a webhook; its pending deliveries fail',
    run: about(findWebhook, async ({ id, url }, { cloud, output }) => {
      const changed = await cloud.changeWebhook(id, { enabled: false });
      output.one(changed, () => [`${url} is disabled`]);
    }),
  },
  {
    name: 'webhook test',
    words: 'WEBHOOK',
    summary: 'send a test event',
    run: about(findWebhook, async ({ id }, { cloud, output }) => {
      const delivery = await cloud.testWebhook(id);
      output.one(delivery, () => [`${delivery.id} is ${delivery.state}`]);
    }),
  },
  {
    name: 'webhook log',
    words: 'WEBHOOK',
    summary: 'list the deliveries of the last 30 days, newest first',
    options: { state: { value: 'STATE', summary: STATES.join(', ') } },
    run: about(findWebhook, async ({ id }, { cloud, output, options }) => {
      const given = options.text('state');
      const state = STATES.find((each) => each === given);
      if (given !== undefined && state === undefined)
        throw new UsageError(`--state must be one of ${STATES.join(', ')}`);
      const deliveries = await all(cloud.listWebhookDeliveries(id, state === undefined ? {} : { state }));
      output.table(deliveries, ['EVENT', 'STATE', 'ATTEMPTS', 'CREATED', 'ID'], (delivery) => {
        const { type, state: now, attempts, created_at } = delivery;
        return [type, now, attempts.length, created_at, delivery.id];
      });
    }),
  },
  {
    name: 'webhook rm',
    words: 'WEBHOOK',
    summary: 'delete a webhook and its log',
    options: YES,
    run: about(findWebhook, async ({ id, url }, { cloud, output, ...call }) => {
      await assertMeant({ ...call, output }, `Delete the webhook to ${url}?`);
      output.one(await cloud.deleteWebhook(id), () => [`${url} is deleted`]);
    }),
  },
  {
    name: 'webhook show',
    words: 'WEBHOOK',
    summary: 'show a webhook',
    run: about(findWebhook, async (webhook, { output }) => output.one(webhook, () => linesOf(webhook))),
  },
];
