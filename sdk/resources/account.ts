import type {
  AccountChange,
  ApiKeyRotation,
  Login,
  NewAccessKey,
  NewAccount,
  Setup,
} from '../../build/sdk/schema.d.ts';
import type { CallOptions, Transport } from '../transport.ts';

/** The caller's own account. */
export function accountCalls(transport: Transport) {
  return {
    register: (body: NewAccount, options?: CallOptions) =>
      transport.json('POST /api/register', { body }, options),
    setUp: (body: Setup, options?: CallOptions) => transport.json('POST /api/setup', { body }, options),
    logIn: (body: Login, options?: CallOptions) => transport.json('POST /api/login', { body }, options),
    logOut: (options?: CallOptions) => transport.json('POST /api/logout', {}, options),
    get: (options?: CallOptions) => transport.json('GET /api/account', {}, options),
    change: (body: AccountChange, options?: CallOptions) =>
      transport.json('PATCH /api/account', { body }, options),
    close: (options?: CallOptions) => transport.json('DELETE /api/account', {}, options),
    rotateApiKey: (body: ApiKeyRotation = {}, options?: CallOptions) =>
      transport.json('POST /api/account/api-key', { body }, options),
    sessions: {
      list: (options?: CallOptions) => transport.pages('GET /api/account/sessions', {}, options),
      end: (id: string, options?: CallOptions) =>
        transport.json('DELETE /api/account/sessions/{id}', { params: { id } }, options),
      endOthers: (options?: CallOptions) => transport.json('DELETE /api/account/sessions', {}, options),
    },
    accessKeys: {
      list: (options?: CallOptions) => transport.pages('GET /api/account/access-keys', {}, options),
      create: (body: NewAccessKey, options?: CallOptions) =>
        transport.json('POST /api/account/access-keys', { body }, options),
      delete: (id: string, options?: CallOptions) =>
        transport.json('DELETE /api/account/access-keys/{id}', { params: { id } }, options),
    },
  };
}
