/** Storage over REST: who may call what, and how forms and queries become calls. */
import { Type } from 'typebox';
import { formatTime } from '../clock.ts';
import { invalidField } from '../errors.ts';
import { linkHeader } from '../http/link-header.ts';
import { defineRoute, type Route } from '../http/route.ts';
import type { Buckets } from './buckets.ts';
import type { Contents } from './contents.ts';
import { sendDownload } from './download.ts';
import type { Emptying } from './emptying.ts';
import type { Inspection } from './inspection.ts';
import type { Links } from './links.ts';
import type { Listing } from './listing.ts';
import type { Objects } from './objects.ts';
import {
  Bucket,
  BucketChange,
  CdnLink,
  Deleted,
  NewBucket,
  ObjectDetails,
  ObjectEntry,
  Uploaded,
  UploadForm,
} from './schema.ts';
import { receiveUpload } from './upload-form.ts';

export interface StorageRoutesDeps {
  readonly buckets: Buckets;
  readonly objects: Objects;
  readonly contents: Contents;
  readonly listing: Listing;
  readonly inspection: Inspection;
  readonly emptying: Emptying;
  readonly links: Links;
  /** Where the data origin is reached, `http://host:port`. */
  readonly dataUrl: () => string;
}

const BucketPath = Type.Object({ name: Type.String() });
const ObjectPath = Type.Object({ id: Type.String() });
const Paging = {
  limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 1000, description: 'Turns on paging' })),
  cursor: Type.Optional(
    Type.String({ maxLength: 8192, description: 'From the Link header of the page before' }),
  ),
};
const VersionQuery = Type.Object({ version_id: Type.Optional(Type.String()) });
const LINK_SECONDS_DEFAULT = 24 * 3600;
const LINK_SECONDS_MAX = 365 * 24 * 3600;

export function storageRoutes(deps: StorageRoutesDeps): Route[] {
  return [...bucketRoutes(deps), ...objectRoutes(deps), ...contentRoutes(deps)];
}

function bucketRoutes({ buckets, emptying }: StorageRoutesDeps): Route[] {
  const path = '/api/buckets/{name}';
  return [
    defineRoute({
      method: 'POST',
      path: '/api/buckets',
      name: 'createBucket',
      tag: 'storage',
      summary: 'Create a bucket',
      permission: 'storage:write',
      body: NewBucket,
      responses: { 201: Bucket },
      errors: ['invalid_bucket_name', 'bucket_exists', 'insufficient_credits'],
      handler: ({ principal, body, receipt }) => buckets.create(principal, body, receipt),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/buckets',
      name: 'listBuckets',
      tag: 'storage',
      summary: 'List your buckets, oldest first',
      permission: 'storage:read',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(Bucket) },
      errors: ['invalid_cursor'],
      produces: 'list',
      handler: ({ principal, query, request }) => bucketList(buckets, principal, query, request),
    }),
    defineRoute({
      method: 'GET',
      path,
      name: 'getBucket',
      tag: 'storage',
      summary: 'Read a bucket',
      permission: 'storage:read',
      params: BucketPath,
      responses: { 200: Bucket },
      errors: ['bucket_not_found'],
      handler: ({ principal, params }) => buckets.describe(principal, params.name),
    }),
    defineRoute({
      method: 'PATCH',
      path,
      name: 'changeBucket',
      tag: 'storage',
      summary: 'Turn versioning or encryption on or off, for later uploads',
      permission: 'storage:write',
      params: BucketPath,
      body: BucketChange,
      responses: { 200: Bucket },
      errors: ['bucket_not_found'],
      handler: ({ principal, params, body }) => buckets.change(principal, params.name, body),
    }),
    defineRoute({
      method: 'DELETE',
      path,
      name: 'deleteBucket',
      tag: 'storage',
      summary: 'Delete a bucket',
      description:
        'Refused while anything is in it, unless `force=true`, which deletes every object and version first.',
      permission: 'storage:write',
      params: BucketPath,
      query: Type.Object({ force: Type.Optional(Type.Boolean()) }),
      responses: { 200: Bucket },
      errors: ['bucket_not_found', 'bucket_not_empty'],
      handler: async ({ principal, params, query }) => {
        if (query.force === true) await emptying.empty(principal, params.name);
        return buckets.removeEmpty(principal, params.name);
      },
    }),
  ];
}

async function* bucketList(
  buckets: Buckets,
  principal: Parameters<Buckets['page']>[0],
  query: { limit?: number; cursor?: string },
  request: Parameters<typeof linkHeader>[0],
): AsyncGenerator<string> {
  let after = 0;
  if (query.cursor !== undefined) after = Number(query.cursor);
  if (!Number.isSafeInteger(after)) throw invalidField('cursor', 'is not one that this listing gave');
  for (;;) {
    const { buckets: page, next } = await buckets.page(principal, after, query.limit ?? 1000);
    if (query.limit !== undefined && next !== null)
      linkHeader(request, { limit: query.limit, cursor: String(next) });
    for (const bucket of page) yield JSON.stringify(bucket);
    if (query.limit !== undefined || next === null) return;
    after = next;
  }
}

function objectRoutes({ objects, listing, inspection }: StorageRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/buckets/{name}/upload',
      name: 'uploadObject',
      tag: 'storage',
      summary: 'Upload a file',
      description:
        'Fields may come in any order. The answer means that bytes and record are on disk. A name that exists gets a new version in a versioned bucket and is replaced elsewhere.',
      permission: 'storage:write',
      params: BucketPath,
      consumes: 'multipart',
      body: UploadForm,
      responses: { 200: Uploaded },
      errors: [
        'bucket_not_found',
        'invalid_multipart',
        'invalid_object_name',
        'insufficient_credits',
        'payload_too_large',
        'out_of_space',
        'read_only',
        'write_conflict',
      ],
      handler: (input) => receiveUpload(objects, input),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/buckets/{name}/files',
      name: 'listObjects',
      tag: 'storage',
      summary: 'List the objects of a bucket',
      description:
        'By name, in UTF-8 byte order; with versions newest first within a name. Without `limit` the whole list is streamed.',
      permission: 'storage:read',
      params: BucketPath,
      query: Type.Object({
        include_versions: Type.Optional(Type.Boolean()),
        prefix: Type.Optional(Type.String()),
        ...Paging,
      }),
      responses: { 200: Type.Array(ObjectEntry) },
      errors: ['bucket_not_found', 'invalid_cursor'],
      produces: 'list',
      handler: async ({ principal, params, query, request }) => {
        const wanted = { prefix: query.prefix ?? '', versions: query.include_versions === true };
        if (query.limit === undefined && query.cursor === undefined)
          return listing.stream(principal, params.name, wanted);
        const limit = query.limit ?? 1000;
        const cursor = query.cursor === undefined ? {} : { cursor: query.cursor };
        const page = await listing.page(principal, params.name, { ...wanted, limit, ...cursor });
        if (page.next !== null) linkHeader(request, { ...query, limit, cursor: page.next });
        return toTexts(page.entries);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/storage/{id}',
      name: 'getObject',
      tag: 'storage',
      summary: 'Read the record of an object and its versions',
      permission: 'storage:read',
      params: ObjectPath,
      responses: { 200: ObjectDetails },
      errors: ['object_not_found'],
      handler: ({ principal, params }) => inspection.describe(principal, params.id),
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/storage/{id}',
      name: 'deleteObject',
      tag: 'storage',
      summary: 'Delete an object, or one version for good',
      permission: 'storage:write',
      params: ObjectPath,
      query: VersionQuery,
      responses: { 200: Deleted },
      errors: ['object_not_found', 'version_not_found', 'write_conflict'],
      handler: ({ principal, params, query }) => objects.remove(principal, params.id, query.version_id),
    }),
  ];
}

async function* toTexts(entries: readonly object[]): AsyncGenerator<string> {
  for (const entry of entries) yield JSON.stringify(entry);
}

function contentRoutes({ contents, links, dataUrl }: StorageRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/storage/{id}/download',
      name: 'downloadObject',
      tag: 'storage',
      summary: 'Download the current bytes, or one version',
      description:
        'Serves HEAD, Range, If-None-Match and If-Range. Without a key a signed link or the session cookie is needed.',
      permission: 'storage:read',
      params: ObjectPath,
      query: Type.Object({
        version_id: Type.Optional(Type.String()),
        expires: Type.Optional(Type.Integer()),
        signature: Type.Optional(Type.String()),
      }),
      responses: { 200: Type.Unsafe<Uint8Array>({ type: 'string', format: 'binary' }) },
      produces: 'bytes',
      acceptsLink: (request) => (request.query as { signature?: unknown }).signature !== undefined,
      errors: [
        'object_not_found',
        'version_not_found',
        'invalid_link',
        'precondition_failed',
        'range_not_satisfiable',
        'data_corrupted',
      ],
      handler: async ({ principal, params, query, request, reply }) => {
        const byLink = principal.via === 'nobody';
        if (byLink) links.check(params.id, query);
        const content = byLink
          ? await contents.findForLink(params.id, query.version_id)
          : await contents.find(principal, params.id, query.version_id);
        await sendDownload({
          contents,
          content,
          request,
          reply,
          caching: 'private, no-cache',
          kind: 'attachment',
        });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/storage/{id}/cdn-url',
      name: 'getCdnUrl',
      tag: 'storage',
      summary: 'Get a signed address on the data origin that needs no key',
      permission: 'storage:read',
      params: ObjectPath,
      query: Type.Object({
        expires_in: Type.Optional(
          Type.Integer({ minimum: 1, maximum: LINK_SECONDS_MAX, description: 'Seconds; default one day' }),
        ),
        version_id: Type.Optional(Type.String()),
      }),
      responses: { 200: CdnLink },
      errors: ['object_not_found', 'version_not_found'],
      handler: async ({ principal, params, query }) => {
        const content = await contents.find(principal, params.id, query.version_id);
        const target = { objectId: params.id, versionId: query.version_id };
        const { query: signed, expiresAt } = links.sign(target, query.expires_in ?? LINK_SECONDS_DEFAULT);
        const fileName = encodeURIComponent(content.name.slice(content.name.lastIndexOf('/') + 1) || 'file');
        return {
          cdn_url: `${dataUrl()}/cdn/${params.id}/${fileName}?${signed}`,
          expires_at: formatTime(expiresAt),
        };
      },
    }),
  ];
}
