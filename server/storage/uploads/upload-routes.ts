/** Uploads over REST: a form with fields in any order becomes a published version. */
import { readForm } from '../../http/bodies/multipart.ts';
import { defineRoute, type Route, type RouteInput } from '../../http/route.ts';
import { unknownFields } from '../../http/validate.ts';
import { conditionOf, presentUpload } from '../listing/entries.ts';
import type { Objects } from '../objects/objects.ts';
import { BucketPath, Uploaded, UploadForm } from '../schema.ts';
import { assertObjectName, readNaming } from './upload-fields.ts';

export function uploadRoutes({ objects }: { readonly objects: Objects }): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/buckets/{name}/upload',
      name: 'uploadObject',
      audit: 'data',
      tag: 'storage',
      summary: 'Upload a file',
      description:
        'Fields may come in any order. When the call returns, the object is on disk. An existing name gets a new version in a versioned bucket and is replaced elsewhere. ' +
        'With `If-None-Match: *`, stores only if no object of that name exists; with `If-Match`, only if the object has that `ETag` or `version_id`. ' +
        'A key that has `storage:append` and not `storage:write` replaces objects in versioned buckets only.',
      permission: 'storage:append',
      params: BucketPath,
      consumes: 'multipart',
      body: UploadForm,
      responses: { 200: Uploaded },
      errors: [
        'bucket_not_found',
        'invalid_multipart',
        'invalid_object_name',
        'insufficient_credits',
        'quota_exceeded',
        'payload_too_large',
        'precondition_failed',
        'out_of_space',
        'read_only',
        'write_conflict',
      ],
      handler: (call) => receive(objects, call),
    }),
  ];
}

type UploadInput = RouteInput<{ name: string }, unknown, unknown>;

/** Stores the file part of the request, or nothing. */
async function receive(objects: Objects, call: UploadInput): Promise<Uploaded> {
  const { principal, params, request, identify } = call;
  const { bucket, upload } = await objects.beginUpload(principal, params.name);
  // Equal bytes have the same MD5, whatever their ETag.
  upload.digest(['MD5']);
  try {
    const form = await readForm(request.raw, upload);
    unknownFields(request, form.fields.keys(), UploadForm);
    const naming = readNaming(form);
    assertObjectName(naming.name);
    objects.assertMayWrite(principal, bucket, naming.name);
    const received = await upload.finish();
    identify([naming, received.sizeBytes, received.digests.MD5]);
    const condition = conditionOf(request.headers);
    const content = objects.received(received);
    return await objects.publish(call, { bucket, content, naming, condition }, presentUpload);
  } finally {
    await upload.end();
  }
}
