import type { Transport } from '../transport.ts';

/** The cloud itself, as anybody may see it. */
export function systemCalls(transport: Transport) {
  return {
    index: () => transport.json('GET /api', {}),
    status: () => transport.json('GET /api/system/status', {}),
    health: () => transport.json('GET /healthz', {}),
    readiness: () => transport.json('GET /readyz', {}),
    metrics: () => transport.text('GET /metrics', {}),
    openApi: () => transport.json('GET /api/openapi.json', {}),
    operation: (id: string, query: { wait?: number } = {}) =>
      transport.json('GET /api/operations/{id}', { params: { id }, query }),
  };
}
