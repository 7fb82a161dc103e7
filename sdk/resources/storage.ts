import type {
  BucketChange,
  Calls,
  NewBucket,
  ObjectChange,
  UploadedObject,
} from '../../build/sdk/schema.d.ts';
import type { CallOptions, Transport } from '../transport.ts';
import { sendForm, type UploadOptions } from '../upload.ts';

export interface NewObject {
  readonly file: Blob;
  /** May hold `/`; default: the name of the file. */
  readonly name?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
}

/** Buckets, and the objects in them. */
export function storageCalls(transport: Transport) {
  return {
    buckets: {
      list: () => transport.pages('GET /api/buckets', {}),
      create: (body: NewBucket) => transport.json('POST /api/buckets', { body }),
      get: (name: string) => transport.json('GET /api/buckets/{name}', { params: { name } }),
      change: (name: string, body: BucketChange) =>
        transport.json('PATCH /api/buckets/{name}', { params: { name }, body }),
      /** `force`: with everything that is in it. */
      delete: (name: string, query: { force?: boolean } = {}) =>
        transport.json('DELETE /api/buckets/{name}', { params: { name }, query }),
    },
    objects: {
      list: (bucket: string, query: Calls['GET /api/buckets/{name}/files']['input']['query'] = {}) =>
        transport.pages('GET /api/buckets/{name}/files', { params: { name: bucket }, query }),
      /** A folder (`prefix`), or what is found in it by a part of the name (`search`). */
      browse: (
        bucket: string,
        query: Omit<Calls['GET /api/buckets/{name}/browse']['input']['query'], 'limit' | 'cursor'> = {},
      ) => transport.pages('GET /api/buckets/{name}/browse', { params: { name: bucket }, query }),
      /** Where a browser with a session downloads a folder, or the whole bucket, as a zip. */
      archiveUrl: (bucket: string, query: { prefix?: string } = {}) =>
        transport.url('GET /api/buckets/{name}/archive', { params: { name: bucket }, query }),
      /** Makes an earlier version current again. */
      restore: (id: string, version_id: string) =>
        transport.json('POST /api/storage/{id}/restore', { params: { id }, body: { version_id } }),
      /** Its metadata or its type; the bytes stay. */
      change: (id: string, body: ObjectChange) =>
        transport.json('PATCH /api/storage/{id}', { params: { id }, body }),
      get: (id: string, options?: CallOptions) =>
        transport.json('GET /api/storage/{id}', { params: { id } }, options),
      upload: (bucket: string, object: NewObject, options?: UploadOptions): Promise<UploadedObject> =>
        upload(transport, bucket, { ...object, ...options }),
      download: (id: string, query: { version_id?: string } = {}, options?: CallOptions) =>
        transport.bytes('GET /api/storage/{id}/download', { params: { id }, query }, options),
      /** Where a browser with a session downloads it. */
      downloadUrl: (id: string, query: { version_id?: string } = {}) =>
        transport.url('GET /api/storage/{id}/download', { params: { id }, query }),
      /** A link that needs no key. */
      share: (id: string, query: { expires_in?: number; version_id?: string } = {}) =>
        transport.json('GET /api/storage/{id}/cdn-url', { params: { id }, query }),
      /** With `version_id` that version is gone for good. */
      delete: (id: string, query: { version_id?: string } = {}) =>
        transport.json('DELETE /api/storage/{id}', { params: { id }, query }),
    },
  };
}

async function upload(
  transport: Transport,
  bucket: string,
  { file, name, metadata, idempotencyKey, ...options }: NewObject & UploadOptions,
): Promise<UploadedObject> {
  const form = new FormData();
  if (name !== undefined) form.set('name', name);
  if (metadata !== undefined) form.set('metadata', JSON.stringify(metadata));
  form.set('file', file);
  const url = transport.url('POST /api/buckets/{name}/upload', { params: { name: bucket } });
  const headers = { ...transport.credentials };
  if (idempotencyKey !== undefined) headers['idempotency-key'] = idempotencyKey;
  return (await sendForm({ url, headers, form }, options)) as UploadedObject;
}
