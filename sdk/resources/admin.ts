import type {
  AccountTermsChange,
  AdminNewAccount,
  CreditAdjustment,
  LedgerVerificationRequest,
  NewImage,
  NewPlan,
  NewPrice,
  PlanChange,
} from '../../build/sdk/schema.d.ts';
import type { CallOptions, Transport, UploadOptions } from '../transport.ts';

/** What administrators do. */
export function adminCalls(transport: Transport) {
  return {
    accounts: accountCalls(transport),
    vms: {
      list: (query: { account_id?: number } = {}, options?: CallOptions) =>
        transport.pages('GET /api/admin/vms', { query }, options),
      stop: (vm_id: string, query: { grace?: number; force?: boolean } = {}, options?: CallOptions) =>
        transport.json('POST /api/admin/vms/{vm_id}/stop', { params: { vm_id }, query }, options),
      delete: (vm_id: string, options?: CallOptions) =>
        transport.json('DELETE /api/admin/vms/{vm_id}', { params: { vm_id } }, options),
    },
    images: imageCalls(transport),
    plans: {
      list: (options?: CallOptions) => transport.json('GET /api/admin/plans', {}, options),
      create: (body: NewPlan, options?: CallOptions) =>
        transport.json('POST /api/admin/plans', { body }, options),
      change: (name: string, body: PlanChange, options?: CallOptions) =>
        transport.json('PATCH /api/admin/plans/{name}', { params: { name }, body }, options),
      delete: (name: string, options?: CallOptions) =>
        transport.json('DELETE /api/admin/plans/{name}', { params: { name } }, options),
    },
    prices: {
      list: (options?: CallOptions) => transport.json('GET /api/admin/prices', {}, options),
      set: (body: NewPrice, options?: CallOptions) =>
        transport.json('POST /api/admin/prices', { body }, options),
    },
    revenue: (query: { from?: string; to?: string } = {}, options?: CallOptions) =>
      transport.json('GET /api/admin/revenue', { query }, options),
    ledger: {
      verify: (body: LedgerVerificationRequest = {}, options?: CallOptions) =>
        transport.json('POST /api/admin/ledger/verify', { body }, options),
      verification: (options?: CallOptions) => transport.json('GET /api/admin/ledger/verify', {}, options),
    },
    scrub: {
      start: (options?: CallOptions) => transport.json('POST /api/admin/scrub', {}, options),
      get: (options?: CallOptions) => transport.json('GET /api/admin/scrub', {}, options),
    },
    metrics: (options?: CallOptions) => transport.text('GET /api/admin/metrics', {}, options),
    rotateMasterKey: (options?: CallOptions) =>
      transport.json('POST /api/admin/master-key/rotate', {}, options),
    setupLink: (options?: CallOptions) => transport.json('POST /api/admin/setup-link', {}, options),
  };
}

function accountCalls(transport: Transport) {
  const of = (id: number) => ({ params: { id: String(id) } });
  return {
    list: (options?: CallOptions) => transport.pages('GET /api/admin/accounts', {}, options),
    create: (body: AdminNewAccount, options?: CallOptions) =>
      transport.json('POST /api/admin/accounts', { body }, options),
    change: (id: number, body: AccountTermsChange, options?: CallOptions) =>
      transport.json('PATCH /api/admin/accounts/{id}', { ...of(id), body }, options),
    adjustCredits: (id: number, body: CreditAdjustment, options?: CallOptions) =>
      transport.json('POST /api/admin/accounts/{id}/credits', { ...of(id), body }, options),
    suspend: (id: number, body: { reason: string }, options?: CallOptions) =>
      transport.json('POST /api/admin/accounts/{id}/suspend', { ...of(id), body }, options),
    resume: (id: number, options?: CallOptions) =>
      transport.json('POST /api/admin/accounts/{id}/resume', of(id), options),
    apiKey: (id: number, options?: CallOptions) =>
      transport.json('POST /api/admin/accounts/{id}/api-key', of(id), options),
    statement: (id: number, query: { month?: string } = {}, options?: CallOptions) =>
      transport.json('GET /api/admin/accounts/{id}/statement', { ...of(id), query }, options),
  };
}

function imageCalls(transport: Transport) {
  return {
    list: (options?: CallOptions) => transport.json('GET /api/admin/images', {}, options),
    add: (body: NewImage, options?: CallOptions) =>
      transport.json('POST /api/admin/images', { body }, options),
    upload: (
      image: { readonly file: Blob; readonly fields: Readonly<Record<string, string>> },
      options?: UploadOptions,
    ) => {
      const form = { ...image.fields, file: image.file };
      return transport.json('POST /api/admin/images/upload', { form }, options);
    },
    delete: (image_id: string, options?: CallOptions) =>
      transport.json('DELETE /api/admin/images/{image_id}', { params: { image_id } }, options),
  };
}
