import type { CallOptions, Transport } from '../transport.ts';

/** The cloud itself, as anybody may see it. */
export function systemCalls(transport: Transport) {
  return {
    index: (options?: CallOptions) => transport.json('GET /api', {}, options),
    status: (options?: CallOptions) => transport.json('GET /api/system/status', {}, options),
    health: (options?: CallOptions) => transport.json('GET /healthz', {}, options),
    readiness: (options?: CallOptions) => transport.json('GET /readyz', {}, options),
    metrics: (options?: CallOptions) => transport.text('GET /metrics', {}, options),
    openApi: (options?: CallOptions) => transport.json('GET /api/openapi.json', {}, options),
    operation: (id: string, query: { wait?: number } = {}, options?: CallOptions) =>
      transport.json('GET /api/operations/{id}', { params: { id }, query }, options),
  };
}
