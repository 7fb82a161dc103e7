/** Webhooks over REST. */
import { listPage, Paging, rowIdCursor } from '../http/list-page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { Type } from '../platform/json/json-schema.ts';
import type { Deliveries } from './deliveries.ts';
import { MAX_PENDING } from './retention.ts';
import {
  CreatedWebhook,
  DeletedWebhook,
  Delivery,
  DeliveryFilter,
  DeliveryPath,
  NewWebhook,
  Recovered,
  Recovery,
  SecretRotation,
  Webhook,
  WebhookChange,
  WebhookPath,
  WebhookSecret,
} from './schema.ts';
import { assertWebhookFields, type Webhooks } from './webhooks.ts';

export interface WebhookRoutesDeps {
  readonly webhooks: Webhooks;
  readonly deliveries: Deliveries;
}

const WEBHOOK = '/api/webhooks/{id}';
const DAY_SECONDS = 86_400;
const COMMON = { tag: 'webhooks' } as const;
const READ = { ...COMMON, permission: 'webhooks:read' } as const;
const WRITE = { ...COMMON, permission: 'webhooks:write' } as const;

export function webhookRoutes(deps: WebhookRoutesDeps): Route[] {
  return [...findRoutes(deps), ...changeRoutes(deps), ...secretRoutes(deps), ...deliveryRoutes(deps)];
}

function findRoutes({ webhooks }: WebhookRoutesDeps): Route[] {
  return [
    defineRoute({
      ...WRITE,
      method: 'POST',
      path: '/api/webhooks',
      name: 'createWebhook',
      audit: 'secret',
      oldSession: 'new',
      summary: 'Create a webhook',
      description:
        'Each event is a POST of JSON, signed per Standard Webhooks 1.0, and retried until a 2xx response ' +
        'arrives within 10 s: after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h. Redirects are not followed.',
      body: NewWebhook,
      rules: assertWebhookFields,
      responses: { 201: CreatedWebhook },
      errors: ['too_many_webhooks'],
      handler: (call) => webhooks.create(call, call.body),
    }),
    defineRoute({
      ...READ,
      method: 'GET',
      path: '/api/webhooks',
      name: 'listWebhooks',
      summary: 'List your webhooks, oldest first',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(Webhook) },
      errors: ['invalid_cursor'],
      produces: 'list',
      handler: ({ principal, query, request }) => {
        const { limit, cursor } = query;
        const most = limit === undefined ? Infinity : limit + 1;
        const entries = webhooks.list(principal, rowIdCursor(cursor), most);
        return listPage({ request, limit, entries, cursorOf: (webhook) => String(webhook.id) });
      },
    }),
    defineRoute({
      ...READ,
      method: 'GET',
      path: WEBHOOK,
      name: 'getWebhook',
      summary: 'Read a webhook',
      params: WebhookPath,
      responses: { 200: Webhook },
      errors: ['webhook_not_found'],
      handler: ({ principal, params }) => webhooks.describe(principal, params.id),
    }),
  ];
}

function changeRoutes({ webhooks }: WebhookRoutesDeps): Route[] {
  return [
    defineRoute({
      ...WRITE,
      method: 'PATCH',
      path: WEBHOOK,
      name: 'changeWebhook',
      summary: 'Change, disable or enable a webhook',
      params: WebhookPath,
      body: WebhookChange,
      rules: assertWebhookFields,
      responses: { 200: Webhook },
      errors: ['webhook_not_found'],
      handler: (call) => webhooks.change(call, call.params.id, call.body),
    }),
    defineRoute({
      ...WRITE,
      method: 'DELETE',
      path: WEBHOOK,
      name: 'deleteWebhook',
      summary: 'Delete a webhook and its delivery log',
      params: WebhookPath,
      responses: { 200: DeletedWebhook },
      errors: ['webhook_not_found'],
      handler: (call) => webhooks.remove(call, call.params.id),
    }),
  ];
}

function secretRoutes({ webhooks }: WebhookRoutesDeps): Route[] {
  return [
    defineRoute({
      ...WRITE,
      method: 'GET',
      path: `${WEBHOOK}/secret`,
      name: 'getWebhookSecret',
      audit: 'secret',
      summary: 'Show the signing secret',
      params: WebhookPath,
      responses: { 200: WebhookSecret },
      errors: ['webhook_not_found'],
      handler: ({ principal, params }) => webhooks.secret(principal, params.id),
    }),
    defineRoute({
      ...WRITE,
      method: 'POST',
      path: `${WEBHOOK}/rotate-secret`,
      name: 'rotateWebhookSecret',
      audit: 'secret',
      summary: 'Rotate the signing secret',
      description: 'For a day by default, the previous secret signs too: two signatures, the new one first.',
      params: WebhookPath,
      body: SecretRotation,
      responses: { 200: WebhookSecret },
      errors: ['webhook_not_found'],
      handler: (call) => {
        const overlapMs = (call.body.overlap_seconds ?? DAY_SECONDS) * 1000;
        return webhooks.rotateSecret(call, call.params.id, overlapMs);
      },
    }),
  ];
}

function deliveryRoutes({ deliveries }: WebhookRoutesDeps): Route[] {
  return [
    defineRoute({
      ...WRITE,
      method: 'POST',
      path: `${WEBHOOK}/test`,
      name: 'testWebhook',
      summary: 'Send a test event',
      description: 'Queues a `webhook.test` event; the deliveries show the outcome.',
      params: WebhookPath,
      responses: { 201: Delivery },
      errors: ['webhook_not_found', 'webhook_disabled'],
      handler: (call) => deliveries.test(call, call.params.id),
    }),
    defineRoute({
      ...READ,
      method: 'GET',
      path: `${WEBHOOK}/deliveries`,
      name: 'listWebhookDeliveries',
      summary: 'List deliveries of the last 30 days, newest first',
      params: WebhookPath,
      query: Type.Object({ ...DeliveryFilter, ...Paging }),
      responses: { 200: Type.Array(Delivery) },
      errors: ['webhook_not_found', 'invalid_cursor'],
      produces: 'list',
      handler: async ({ principal, params, query, request }) => {
        const { limit, cursor, state } = query;
        const most = limit === undefined ? Infinity : limit + 1;
        const page = { before: rowIdCursor(cursor), limit: most, state };
        const entries = await deliveries.list(principal, params.id, page);
        return listPage({ request, limit, entries, cursorOf: (delivery) => String(delivery.id) });
      },
    }),
    defineRoute({
      ...WRITE,
      method: 'POST',
      path: `${WEBHOOK}/deliveries/{delivery_id}/replay`,
      name: 'replayWebhookDelivery',
      summary: 'Send an event again, with the same id',
      params: DeliveryPath,
      responses: { 200: Delivery },
      errors: ['webhook_not_found', 'delivery_not_found', 'webhook_disabled'],
      handler: (call) => {
        const { id: webhookId, delivery_id: deliveryId } = call.params;
        return deliveries.replay(call, { webhookId, deliveryId });
      },
    }),
    defineRoute({
      ...WRITE,
      method: 'POST',
      path: `${WEBHOOK}/recover`,
      name: 'recoverWebhook',
      summary: 'Retry deliveries that failed since a time',
      description: `At most ${MAX_PENDING} deliveries are pending at a time; the response says how many remain to retry.`,
      params: WebhookPath,
      body: Recovery,
      responses: { 200: Recovered },
      errors: ['webhook_not_found', 'webhook_disabled'],
      handler: (call) => deliveries.recover(call, call.params.id, call.body.since),
    }),
  ];
}
