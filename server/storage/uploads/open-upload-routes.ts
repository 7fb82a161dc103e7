/** Multipart uploads in progress, over REST, of all clients. */
import { jsonTexts, linkHeader, Paging } from '../../http/list-page.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { BucketPath, EndedUpload, OpenUpload, UploadPath } from '../schema.ts';
import type { OpenUploads } from './open-uploads.ts';

/** Without a limit, the list has all open uploads of the bucket. */
const ALL = 10_000;

export function openUploadRoutes({ openUploads }: { readonly openUploads: OpenUploads }): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/buckets/{name}/uploads',
      name: 'listUploads',
      tag: 'storage',
      summary: 'List the multipart uploads in progress of a bucket',
      description:
        'Sorted by name, then by start time, oldest first. Their parts use storage; at `ends_at`, an upload is aborted.',
      permission: 'storage:read',
      params: BucketPath,
      query: Type.Object(Paging),
      responses: { 200: Type.Array(OpenUpload) },
      produces: 'list',
      errors: ['bucket_not_found', 'invalid_cursor'],
      handler: async ({ principal, params, query, request }) => {
        const { limit = ALL, cursor } = query;
        const { uploads, next } = await openUploads.page(principal, params.name, { cursor, limit });
        if (next !== null) linkHeader(request, { limit, cursor: next });
        return jsonTexts(uploads);
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/buckets/{name}/uploads/{upload_id}',
      name: 'abortUpload',
      audit: 'none',
      tag: 'storage',
      summary: 'Abort a multipart upload and remove its parts',
      permission: 'storage:append',
      params: UploadPath,
      responses: { 200: EndedUpload },
      errors: ['bucket_not_found', 'upload_not_found'],
      handler: (call) => openUploads.abort(call, call.params.name, call.params.upload_id),
    }),
  ];
}
