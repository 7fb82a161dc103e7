import type {
  AccountTermsChange,
  AdminImage,
  AdminNewAccount,
  CreditAdjustment,
  LedgerVerificationRequest,
  NewImage,
  NewPlan,
  NewPrice,
  PlanChange,
} from '../../build/sdk/schema.d.ts';
import type { Transport } from '../transport.ts';
import { sendForm, type UploadOptions } from '../upload.ts';

/** What administrators do. */
export function adminCalls(transport: Transport) {
  return {
    accounts: accountCalls(transport),
    vms: {
      list: (query: { account_id?: number } = {}) => transport.pages('GET /api/admin/vms', { query }),
      stop: (vm_id: string, query: { grace?: number; force?: boolean } = {}) =>
        transport.json('POST /api/admin/vms/{vm_id}/stop', { params: { vm_id }, query }),
      delete: (vm_id: string) => transport.json('DELETE /api/admin/vms/{vm_id}', { params: { vm_id } }),
    },
    images: imageCalls(transport),
    plans: {
      list: () => transport.json('GET /api/admin/plans', {}),
      create: (body: NewPlan) => transport.json('POST /api/admin/plans', { body }),
      change: (name: string, body: PlanChange) =>
        transport.json('PATCH /api/admin/plans/{name}', { params: { name }, body }),
      delete: (name: string) => transport.json('DELETE /api/admin/plans/{name}', { params: { name } }),
    },
    prices: {
      list: () => transport.json('GET /api/admin/prices', {}),
      set: (body: NewPrice) => transport.json('POST /api/admin/prices', { body }),
    },
    revenue: (query: { from?: string; to?: string } = {}) =>
      transport.json('GET /api/admin/revenue', { query }),
    ledger: {
      verify: (body: LedgerVerificationRequest = {}) =>
        transport.json('POST /api/admin/ledger/verify', { body }),
      verification: () => transport.json('GET /api/admin/ledger/verify', {}),
    },
    scrub: {
      start: () => transport.json('POST /api/admin/scrub', {}),
      get: () => transport.json('GET /api/admin/scrub', {}),
    },
    metrics: () => transport.text('GET /api/admin/metrics', {}),
    rotateMasterKey: () => transport.json('POST /api/admin/master-key/rotate', {}),
    setupLink: () => transport.json('POST /api/admin/setup-link', {}),
  };
}

function accountCalls(transport: Transport) {
  const of = (id: number) => ({ params: { id: String(id) } });
  return {
    list: () => transport.pages('GET /api/admin/accounts', {}),
    create: (body: AdminNewAccount) => transport.json('POST /api/admin/accounts', { body }),
    change: (id: number, body: AccountTermsChange) =>
      transport.json('PATCH /api/admin/accounts/{id}', { ...of(id), body }),
    adjustCredits: (id: number, body: CreditAdjustment) =>
      transport.json('POST /api/admin/accounts/{id}/credits', { ...of(id), body }),
    suspend: (id: number, body: { reason: string }) =>
      transport.json('POST /api/admin/accounts/{id}/suspend', { ...of(id), body }),
    resume: (id: number) => transport.json('POST /api/admin/accounts/{id}/resume', of(id)),
    apiKey: (id: number) => transport.json('POST /api/admin/accounts/{id}/api-key', of(id)),
    statement: (id: number, query: { month?: string } = {}) =>
      transport.json('GET /api/admin/accounts/{id}/statement', { ...of(id), query }),
  };
}

function imageCalls(transport: Transport) {
  return {
    list: () => transport.json('GET /api/admin/images', {}),
    add: (body: NewImage) => transport.json('POST /api/admin/images', { body }),
    upload: async (
      image: { readonly file: Blob; readonly fields: Readonly<Record<string, string>> },
      options?: UploadOptions,
    ): Promise<AdminImage> => {
      const form = new FormData();
      for (const [name, value] of Object.entries(image.fields)) form.set(name, value);
      form.set('file', image.file);
      const url = transport.url('POST /api/admin/images/upload', {});
      return (await sendForm({ url, headers: transport.credentials, form }, options)) as AdminImage;
    },
    delete: (image_id: string) =>
      transport.json('DELETE /api/admin/images/{image_id}', { params: { image_id } }),
  };
}
