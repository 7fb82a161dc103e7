/** Uploads in parts over REST: begin, send parts in any order (repeatedly if needed), and complete. */
import { readForm } from '../../http/bodies/multipart.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { invalidField } from '../../platform/errors.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { conditionOf } from '../listing/entries.ts';
import { BucketPath, UploadPath } from '../schema.ts';
import {
  BegunUpload,
  CompletedUpload,
  NewUpload,
  PartForm,
  PartPath,
  UploadEnd,
  UploadPart,
} from './part-schema.ts';
import type { RestUploads } from './rest-uploads.ts';

const COMMON = { tag: 'storage', audit: 'data', permission: 'storage:write' } as const;
const STORING = [
  'insufficient_credits',
  'quota_exceeded',
  'out_of_space',
  'read_only',
  'write_conflict',
] as const;

export function partRoutes({ restUploads }: { readonly restUploads: RestUploads }): Route[] {
  return [
    beginRoute(restUploads),
    partRoute(restUploads),
    partsRoute(restUploads),
    completeRoute(restUploads),
  ];
}

function beginRoute(uploads: RestUploads): Route {
  return defineRoute({
    ...COMMON,
    method: 'POST',
    path: '/api/buckets/{name}/uploads',
    name: 'beginUpload',
    summary: 'Begin an upload in parts',
    description:
      'For large files: an interrupted upload continues after the last part that has arrived. After this call, send the parts (`uploadPart`), of at least ' +
      '5 MiB except the last, and complete it (`completeUpload`). An upload that is not completed ends after a week.',
    params: BucketPath,
    body: NewUpload,
    responses: { 201: BegunUpload },
    errors: ['bucket_not_found', 'invalid_object_name', ...STORING],
    handler: (call) => {
      const { name, mime_type: mimeType } = call.body;
      return uploads.begin(call, call.params.name, { name, mimeType });
    },
  });
}

function partRoute(uploads: RestUploads): Route {
  return defineRoute({
    ...COMMON,
    method: 'POST',
    path: '/api/buckets/{name}/uploads/{upload_id}/parts/{number}',
    name: 'uploadPart',
    summary: 'Send a part of an upload',
    description:
      'When the call returns, the part is on disk. A part that is sent again replaces the earlier one.',
    params: PartPath,
    consumes: 'multipart',
    body: PartForm,
    isRepeatable: true,
    responses: { 200: UploadPart },
    errors: [
      'bucket_not_found',
      'upload_not_found',
      'invalid_multipart',
      'payload_too_large',
      'customer_key_required',
      ...STORING,
    ],
    handler: (call) => {
      const { name: bucket, upload_id: uploadId, number } = call.params;
      return uploads.put(call, { bucket, uploadId, number }, async (upload) => {
        const { file } = await readForm(call.request.raw, upload);
        if (file === undefined) throw invalidField('file', 'is required as a form part with a file name');
      });
    },
  });
}

function partsRoute(uploads: RestUploads): Route {
  return defineRoute({
    method: 'GET',
    path: '/api/buckets/{name}/uploads/{upload_id}/parts',
    name: 'listUploadParts',
    tag: 'storage',
    summary: 'List the parts of an upload that have arrived',
    permission: 'storage:read',
    params: UploadPath,
    responses: { 200: Type.Array(UploadPart) },
    errors: ['bucket_not_found', 'upload_not_found'],
    handler: ({ principal, params: { name: bucket, upload_id: uploadId } }) =>
      uploads.parts(principal, { bucket, uploadId }),
  });
}

function completeRoute(uploads: RestUploads): Route {
  return defineRoute({
    ...COMMON,
    method: 'POST',
    path: '/api/buckets/{name}/uploads/{upload_id}/complete',
    name: 'completeUpload',
    summary: 'Complete a multipart upload',
    description:
      'Joins the parts to one object. `size` and `crc32` are compared with the received bytes; if they differ, nothing is stored. ' +
      'Supports `If-Match` and `If-None-Match` as an upload in one piece does. Completing again returns the first result.',
    params: UploadPath,
    body: UploadEnd,
    isRepeatable: true,
    responses: { 200: CompletedUpload },
    errors: [
      'bucket_not_found',
      'upload_not_found',
      'object_not_found',
      'payload_too_large',
      'precondition_failed',
      ...STORING,
    ],
    handler: (call) => {
      const { name: bucket, upload_id: uploadId } = call.params;
      const condition = conditionOf(call.request.headers);
      return uploads.complete(call, { bucket, uploadId }, { end: call.body, condition });
    },
  });
}
