import type { BucketChange, Calls, NewBucket, ObjectChange } from '../../build/sdk/schema.d.ts';
import type { CallOptions, Transport, UploadOptions } from '../transport.ts';

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
      list: (options?: CallOptions) => transport.pages('GET /api/buckets', {}, options),
      create: (body: NewBucket, options?: CallOptions) =>
        transport.json('POST /api/buckets', { body }, options),
      get: (name: string, options?: CallOptions) =>
        transport.json('GET /api/buckets/{name}', { params: { name } }, options),
      change: (name: string, body: BucketChange, options?: CallOptions) =>
        transport.json('PATCH /api/buckets/{name}', { params: { name }, body }, options),
      /** `force`: with everything that is in it. */
      delete: (name: string, query: { force?: boolean } = {}, options?: CallOptions) =>
        transport.json('DELETE /api/buckets/{name}', { params: { name }, query }, options),
    },
    objects: {
      list: (
        bucket: string,
        query: Calls['GET /api/buckets/{name}/files']['input']['query'] = {},
        options?: CallOptions,
      ) => transport.pages('GET /api/buckets/{name}/files', { params: { name: bucket }, query }, options),
      /** A folder (`prefix`), or what is found in it by a part of the name (`search`). */
      browse: (
        bucket: string,
        query: Omit<Calls['GET /api/buckets/{name}/browse']['input']['query'], 'limit' | 'cursor'> = {},
        options?: CallOptions,
      ) => transport.pages('GET /api/buckets/{name}/browse', { params: { name: bucket }, query }, options),
      /** Where a browser with a session downloads a folder, or the whole bucket, as a zip. */
      archiveUrl: (bucket: string, query: { prefix?: string } = {}) =>
        transport.url('GET /api/buckets/{name}/archive', { params: { name: bucket }, query }),
      /** Makes an earlier version current again. */
      restore: (id: string, version_id: string, options?: CallOptions) =>
        transport.json('POST /api/storage/{id}/restore', { params: { id }, body: { version_id } }, options),
      /** Its metadata or its type; the bytes stay. */
      change: (id: string, body: ObjectChange, options?: CallOptions) =>
        transport.json('PATCH /api/storage/{id}', { params: { id }, body }, options),
      get: (id: string, options?: CallOptions) =>
        transport.json('GET /api/storage/{id}', { params: { id } }, options),
      upload: (bucket: string, { file, name, metadata }: NewObject, options?: UploadOptions) => {
        const input = {
          params: { name: bucket },
          form: { name, metadata: metadata && JSON.stringify(metadata), file },
        };
        return transport.json('POST /api/buckets/{name}/upload', input, options);
      },
      download: (id: string, query: { version_id?: string } = {}, options?: CallOptions) =>
        transport.bytes('GET /api/storage/{id}/download', { params: { id }, query }, options),
      /** Where a browser with a session downloads it. */
      downloadUrl: (id: string, query: { version_id?: string } = {}) =>
        transport.url('GET /api/storage/{id}/download', { params: { id }, query }),
      /** A link that needs no key. */
      share: (id: string, query: { expires_in?: number; version_id?: string } = {}, options?: CallOptions) =>
        transport.json('GET /api/storage/{id}/cdn-url', { params: { id }, query }, options),
      /** With `version_id` that version is gone for good. */
      delete: (id: string, query: { version_id?: string } = {}, options?: CallOptions) =>
        transport.json('DELETE /api/storage/{id}', { params: { id }, query }, options),
    },
  };
}
