import type {
  AccountChange,
  ApiKeyRotation,
  Login,
  NewAccessKey,
  NewAccount,
  Setup,
} from '../../build/sdk/schema.d.ts';
import type { Transport } from '../transport.ts';

/** The caller's own account. */
export function accountCalls(transport: Transport) {
  return {
    register: (body: NewAccount) => transport.json('POST /api/register', { body }),
    setUp: (body: Setup) => transport.json('POST /api/setup', { body }),
    logIn: (body: Login) => transport.json('POST /api/login', { body }),
    logOut: () => transport.json('POST /api/logout', {}),
    get: () => transport.json('GET /api/account', {}),
    change: (body: AccountChange) => transport.json('PATCH /api/account', { body }),
    close: () => transport.json('DELETE /api/account', {}),
    rotateApiKey: (body: ApiKeyRotation = {}) => transport.json('POST /api/account/api-key', { body }),
    sessions: {
      list: () => transport.pages('GET /api/account/sessions', {}),
      end: (id: string) => transport.json('DELETE /api/account/sessions/{id}', { params: { id } }),
      endOthers: () => transport.json('DELETE /api/account/sessions', {}),
    },
    accessKeys: {
      list: () => transport.pages('GET /api/account/access-keys', {}),
      create: (body: NewAccessKey) => transport.json('POST /api/account/access-keys', { body }),
      delete: (id: string) => transport.json('DELETE /api/account/access-keys/{id}', { params: { id } }),
    },
  };
}
