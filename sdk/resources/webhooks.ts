import type {
  NewWebhook,
  WebhookChange,
  WebhookRecovery,
  WebhookSecretRotation,
} from '../../build/sdk/schema.d.ts';
import type { Transport } from '../transport.ts';

/** Where events are sent. */
export function webhookCalls(transport: Transport) {
  const of = (id: string) => ({ params: { id } });
  return {
    list: () => transport.pages('GET /api/webhooks', {}),
    create: (body: NewWebhook) => transport.json('POST /api/webhooks', { body }),
    get: (id: string) => transport.json('GET /api/webhooks/{id}', of(id)),
    change: (id: string, body: WebhookChange) =>
      transport.json('PATCH /api/webhooks/{id}', { ...of(id), body }),
    delete: (id: string) => transport.json('DELETE /api/webhooks/{id}', of(id)),
    secret: (id: string) => transport.json('GET /api/webhooks/{id}/secret', of(id)),
    rotateSecret: (id: string, body: WebhookSecretRotation = {}) =>
      transport.json('POST /api/webhooks/{id}/rotate-secret', { ...of(id), body }),
    test: (id: string) => transport.json('POST /api/webhooks/{id}/test', of(id)),
    deliveries: (id: string, query: { state?: 'pending' | 'delivered' | 'failed' } = {}) =>
      transport.pages('GET /api/webhooks/{id}/deliveries', { ...of(id), query }),
    replay: (id: string, delivery_id: string) =>
      transport.json('POST /api/webhooks/{id}/deliveries/{delivery_id}/replay', {
        params: { id, delivery_id },
      }),
    recover: (id: string, body: WebhookRecovery) =>
      transport.json('POST /api/webhooks/{id}/recover', { ...of(id), body }),
  };
}
