import type { Transport } from '../transport.ts';

/** What the caller used, pays and may have. */
export function billingCalls(transport: Transport) {
  return {
    usage: (query: { from?: string; to?: string } = {}) =>
      transport.json('GET /api/billing/usage', { query }),
    /** The items of usage() as a table (RFC 4180). */
    usageCsv: (query: { from?: string; to?: string } = {}) =>
      transport.text('GET /api/billing/usage', { query }, { accept: 'text/csv' }),
    ledger: () => transport.pages('GET /api/billing/ledger', {}),
    estimate: () => transport.json('GET /api/billing/estimate', {}),
    prices: () => transport.json('GET /api/billing/prices', {}),
    quotas: () => transport.json('GET /api/billing/quotas', {}),
  };
}
