/** Named encryption keys over REST. */
import { defineRoute, type Route } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { EncryptionKey, EncryptionKeyChange, NewEncryptionKey } from '../schema.ts';
import type { NamedKeys } from './named-keys.ts';

export interface EncryptionKeyRoutesDeps {
  readonly namedKeys: NamedKeys;
}

const KEYS = '/api/encryption-keys';

export function encryptionKeyRoutes({ namedKeys }: EncryptionKeyRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: KEYS,
      name: 'createEncryptionKey',
      tag: 'storage',
      summary: 'Create an encryption key that S3 clients can name (SSE-KMS)',
      description:
        'You choose the `id`; S3 requests send it as `x-amz-server-side-encryption-aws-kms-key-id`. The key itself ' +
        'never leaves the cloud.',
      permission: 'storage:admin',
      body: NewEncryptionKey,
      responses: { 201: EncryptionKey },
      errors: ['encryption_key_exists', 'quota_exceeded', 'scope_required'],
      handler: (call) => namedKeys.create(call, call.body.id),
    }),
    defineRoute({
      method: 'GET',
      path: KEYS,
      name: 'listEncryptionKeys',
      tag: 'storage',
      summary: 'List your encryption keys by name',
      permission: 'storage:read',
      responses: { 200: Type.Array(EncryptionKey) },
      handler: ({ principal }) => namedKeys.list(principal),
    }),
    defineRoute({
      method: 'PATCH',
      path: `${KEYS}/{keyId}`,
      name: 'changeEncryptionKey',
      tag: 'storage',
      summary: 'Disable or enable an encryption key',
      description:
        'While a key is disabled, objects encrypted with it are kept but cannot be read, and no new objects can be encrypted with it.',
      permission: 'storage:admin',
      params: Type.Object({ keyId: Type.String() }),
      body: EncryptionKeyChange,
      responses: { 200: EncryptionKey },
      errors: ['encryption_key_not_found', 'scope_required'],
      handler: (call) => namedKeys.change(call, call.params.keyId, call.body),
    }),
    defineRoute({
      method: 'DELETE',
      path: `${KEYS}/{keyId}`,
      name: 'deleteEncryptionKey',
      tag: 'storage',
      summary: 'Delete an encryption key that encrypts no stored bytes',
      permission: 'storage:admin',
      params: Type.Object({ keyId: Type.String() }),
      responses: { 200: EncryptionKey },
      errors: ['encryption_key_not_found', 'encryption_key_in_use', 'scope_required'],
      handler: (call) => namedKeys.remove(call, call.params.keyId),
    }),
  ];
}
