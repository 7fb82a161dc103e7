import type {
  NewWebhook,
  WebhookChange,
  WebhookRecovery,
  WebhookSecretRotation,
} from '../../build/sdk/schema.d.ts';
import type { CallOptions, Transport } from '../transport.ts';

/** Where events are sent. */
export function webhookCalls(transport: Transport) {
  const of = (id: string) => ({ params: { id } });
  return {
    list: (options?: CallOptions) => transport.pages('GET /api/webhooks', {}, options),
    create: (body: NewWebhook, options?: CallOptions) =>
      transport.json('POST /api/webhooks', { body }, options),
    get: (id: string, options?: CallOptions) => transport.json('GET /api/webhooks/{id}', of(id), options),
    change: (id: string, body: WebhookChange, options?: CallOptions) =>
      transport.json('PATCH /api/webhooks/{id}', { ...of(id), body }, options),
    delete: (id: string, options?: CallOptions) =>
      transport.json('DELETE /api/webhooks/{id}', of(id), options),
    secret: (id: string, options?: CallOptions) =>
      transport.json('GET /api/webhooks/{id}/secret', of(id), options),
    rotateSecret: (id: string, body: WebhookSecretRotation = {}, options?: CallOptions) =>
      transport.json('POST /api/webhooks/{id}/rotate-secret', { ...of(id), body }, options),
    test: (id: string, options?: CallOptions) =>
      transport.json('POST /api/webhooks/{id}/test', of(id), options),
    deliveries: (
      id: string,
      query: { state?: 'pending' | 'delivered' | 'failed' } = {},
      options?: CallOptions,
    ) => transport.pages('GET /api/webhooks/{id}/deliveries', { ...of(id), query }, options),
    replay: (id: string, delivery_id: string, options?: CallOptions) =>
      transport.json(
        'POST /api/webhooks/{id}/deliveries/{delivery_id}/replay',
        {
          params: { id, delivery_id },
        },
        options,
      ),
    recover: (id: string, body: WebhookRecovery, options?: CallOptions) =>
      transport.json('POST /api/webhooks/{id}/recover', { ...of(id), body }, options),
  };
}
