import type { CallOptions, Transport } from '../transport.ts';

/** What the caller used, pays and may have. */
export function billingCalls(transport: Transport) {
  return {
    usage: (query: { from?: string; to?: string } = {}, options?: CallOptions) =>
      transport.json('GET /api/billing/usage', { query }, options),
    /** The items of usage() as a table (RFC 4180). */
    usageCsv: (query: { from?: string; to?: string } = {}, options?: CallOptions) =>
      transport.text('GET /api/billing/usage', { query, accept: 'text/csv' }, options),
    ledger: (options?: CallOptions) => transport.pages('GET /api/billing/ledger', {}, options),
    estimate: (options?: CallOptions) => transport.json('GET /api/billing/estimate', {}, options),
    prices: (options?: CallOptions) => transport.json('GET /api/billing/prices', {}, options),
    quotas: (options?: CallOptions) => transport.json('GET /api/billing/quotas', {}, options),
  };
}
