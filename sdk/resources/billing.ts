import type { Transport } from '../transport.ts';

/** What the caller used, pays and may have. */
export function billingCalls(transport: Transport) {
  return {
    usage: (query: { from?: string; to?: string } = {}) =>
      transport.json('GET /api/billing/usage', { query }),
    ledger: () => transport.pages('GET /api/billing/ledger', {}),
    estimate: () => transport.json('GET /api/billing/estimate', {}),
    prices: () => transport.json('GET /api/billing/prices', {}),
    quotas: () => transport.json('GET /api/billing/quotas', {}),
  };
}
