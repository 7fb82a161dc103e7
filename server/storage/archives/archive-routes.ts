/** Downloads folders and selected files as one zip. */
import { closeOf } from '../../http/bodies/received-file.ts';
import { sendStream } from '../../http/bodies/send-content.ts';
import { contentDisposition } from '../../http/response.ts';
import { defineRoute, type Route, TicketField } from '../../http/route.ts';
import { formatTime } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { namedObject, Type } from '../../platform/json/json-schema.ts';
import { BucketPath } from '../schema.ts';
import type { Archives } from './archives.ts';
import type { Selections } from './selections.ts';

export interface ArchiveRoutesDeps {
  readonly archives: Archives;
  readonly selections: Selections;
}

const MOST_NAMES = 10_000;
const BODY_MAX_BYTES = 2 ** 20;
const Bytes = Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' });

const NewSelection = namedObject('NewSelection', {
  names: Type.Array(Type.String({ minLength: 1 }), {
    minItems: 1,
    maxItems: MOST_NAMES,
    description: 'Object names; a name that ends with "/" is a folder with its content',
  }),
});
const KeptSelection = namedObject('Selection', {
  selection_id: Type.String(),
  expires_at: Type.String({ description: 'UTC' }),
});

export function archiveRoutes({ archives, selections }: ArchiveRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/buckets/{name}/archive',
      name: 'downloadFolder',
      audit: 'data',
      tag: 'storage',
      summary: 'Download a folder, or selected files, as a zip',
      description:
        'Includes all subfolders; without `prefix` and `selection`, the whole bucket. The zip is generated while it is sent, and billed as ' +
        'a download of each file. A truncated zip has no directory, so every program rejects it.',
      permission: 'storage:read',
      params: BucketPath,
      query: Type.Object({
        prefix: Type.Optional(Type.String({ pattern: '/$', 'x-rule': 'must end with "/"' })),
        selection: Type.Optional(
          Type.String({
            description: 'selection_id of POST /api/buckets/{name}/selections, instead of `prefix`',
          }),
        ),
        ticket: TicketField,
      }),
      acceptsTicket: true,
      responses: { 200: Bytes },
      produces: 'bytes',
      errors: [
        'bucket_not_found',
        'selection_not_found',
        'invalid_request',
        'customer_key_required',
        'data_corrupted',
        'overloaded',
      ],
      handler: async (call) => {
        const { principal, data, params, query, request, reply } = call;
        const bucket = params.name;
        const { prefix, selection } = query;
        if (prefix !== undefined && selection !== undefined)
          throw new AppError('invalid_request', 'Give prefix or selection, not both');
        const reader = { principal, data, signal: closeOf(reply) };
        const archive =
          selection === undefined
            ? await archives.open(reader, { bucket, prefix: prefix ?? '' })
            : await archives.openChosen(reader, bucket, await selections.find(principal, selection));
        const headers = request.responseHeaders;
        headers['content-type'] = 'application/zip';
        headers['content-disposition'] = contentDisposition('attachment', archive.fileName);
        headers['cache-control'] = 'no-store';
        await sendStream(request, reply, { status: 200, headers, read: archive.send });
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/buckets/{name}/selections',
      name: 'selectFiles',
      audit: 'none',
      tag: 'storage',
      summary: 'Select files and folders to download as one zip',
      description:
        'The selection is kept for 15 minutes, for `GET /api/buckets/{name}/archive?selection=`. Paths in the zip begin in the folder ' +
        'that contains all of them. Objects that no longer exist are left out.',
      permission: 'storage:read',
      params: BucketPath,
      body: NewSelection,
      maxBodyBytes: BODY_MAX_BYTES,
      isRepeatable: true,
      responses: { 201: KeptSelection },
      errors: ['bucket_not_found', 'payload_too_large'],
      handler: async ({ principal, params, body }) => {
        const { id, endsAt } = await selections.keep(principal, params.name, body.names);
        return { selection_id: id, expires_at: formatTime(endsAt) };
      },
    }),
  ];
}
