/** Objects over REST: list, read, change and delete. */
import { closeOf } from '../../http/bodies/received-file.ts';
import { jsonTexts, linkHeader, Paging, rowIdCursor } from '../../http/list-page.ts';
import { defineRoute, type Route, type RouteInput } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import type { Browsing } from '../listing/browsing.ts';
import { type Condition, conditionOf } from '../listing/entries.ts';
import type { FolderSizes } from '../listing/folder-sizes.ts';
import type { Listing, ObjectInspector } from '../listing/listing.ts';
import {
  BucketEntry,
  BucketPath,
  Deleted,
  FolderSize,
  ObjectChange,
  ObjectDetails,
  ObjectEntry,
  ObjectPath,
  ObjectPlace,
  Uploaded,
  VersionChoice,
} from '../schema.ts';
import { metadataText } from '../uploads/upload-fields.ts';
import type { Objects } from './objects.ts';
import type { Place, Relocations } from './relocations.ts';
import type { Removals } from './removals.ts';

export interface ObjectRoutesDeps {
  readonly objects: Objects;
  readonly removals: Removals;
  readonly listing: Listing;
  readonly browsing: Browsing;
  readonly folderSizes: FolderSizes;
  readonly objectInspector: ObjectInspector;
  readonly relocations: Relocations;
}

const MOST_VERSIONS = 1000;
/** Default page size. */
const BROWSED = 100;
const VersionLimit = Type.Optional(
  Type.Integer({
    minimum: 1,
    maximum: MOST_VERSIONS,
    default: MOST_VERSIONS,
    description: 'Maximum number of versions',
  }),
);

export function objectRoutes(deps: ObjectRoutesDeps): Route[] {
  return [
    ...listRoutes(deps),
    sizeRoute(deps),
    ...singleRoutes(deps),
    changeRoute(deps),
    ...placeRoutes(deps),
  ];
}

function listRoutes({ listing, browsing }: ObjectRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/buckets/{name}/files',
      name: 'listObjects',
      tag: 'storage',
      summary: 'List the objects of a bucket',
      description:
        'By name, in UTF-8 byte order; versions of a name newest first. Without `limit` the whole list is streamed.',
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
        return jsonTexts(page.entries);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/buckets/{name}/browse',
      name: 'browseBucket',
      tag: 'storage',
      summary: 'Browse a bucket by folder, or search object names',
      description:
        'Names are split into folders at "/"; lists the direct entries of the folder `prefix`. With `search`, lists the ' +
        'objects in it and its subfolders whose names contain the text; A to Z are case-insensitive. ' +
        'Sorted by size or time, folders come first. With `deleted`, lists deleted objects that can be restored, by name.',
      permission: 'storage:read',
      params: BucketPath,
      query: Type.Object({
        prefix: Type.Optional(Type.String()),
        search: Type.Optional(Type.String({ maxLength: 200 })),
        sort: Type.Optional(
          Type.Union([Type.Literal('name'), Type.Literal('size'), Type.Literal('created_at')]),
        ),
        order: Type.Optional(Type.Union([Type.Literal('asc'), Type.Literal('desc')])),
        deleted: Type.Optional(Type.Boolean()),
        ...Paging,
      }),
      responses: { 200: Type.Array(BucketEntry) },
      errors: ['bucket_not_found', 'invalid_cursor'],
      handler: async ({ principal, params, query, request, reply }) => {
        const { prefix = '', limit = BROWSED } = query;
        const wanted = { ...query, prefix, limit, signal: closeOf(reply) };
        const page = await browsing.page(principal, params.name, wanted);
        if (page.next !== null) linkHeader(request, { ...query, limit, cursor: page.next });
        return page.entries;
      },
    }),
  ];
}

function sizeRoute({ folderSizes }: ObjectRoutesDeps): Route {
  return defineRoute({
    method: 'GET',
    path: '/api/buckets/{name}/size',
    name: 'getFolderSize',
    tag: 'storage',
    summary: 'Count the objects of a folder and their bytes',
    description:
      'Live objects whose names begin with `prefix`. After a second, a call returns its count so far and ' +
      '`next_cursor`; add up the results of all calls. An account can count one folder at a time.',
    permission: 'storage:read',
    params: BucketPath,
    query: Type.Object({ prefix: Type.Optional(Type.String()), cursor: Type.Optional(Type.String()) }),
    responses: { 200: FolderSize },
    errors: ['bucket_not_found', 'invalid_cursor'],
    handler: ({ principal, params, query, reply }) => {
      const { prefix = '', cursor } = query;
      return folderSizes.of(principal, params.name, { prefix, cursor, signal: closeOf(reply) });
    },
  });
}

function singleRoutes({ objects, removals, objectInspector }: ObjectRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/storage/{id}/restore',
      name: 'restoreObject',
      audit: 'data',
      tag: 'storage',
      summary: 'Restore an earlier version',
      description: 'Creates a new version with the same bytes; no version is lost.',
      permission: 'storage:write',
      params: ObjectPath,
      body: VersionChoice,
      responses: { 200: Uploaded },
      errors: [
        'object_not_found',
        'version_not_found',
        'insufficient_credits',
        'quota_exceeded',
        'out_of_space',
        'write_conflict',
      ],
      handler: (call) => objects.restore(call, { objectId: call.params.id, versionId: call.body.version_id }),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/storage/{id}',
      name: 'getObject',
      tag: 'storage',
      summary: 'Read the metadata of an object and its versions',
      description:
        'At most `limit` versions per page; if there are more, `versions_truncated` is true and the `Link` header has the next page.',
      permission: 'storage:read',
      params: ObjectPath,
      query: Type.Object({ ...Paging, limit: VersionLimit }),
      responses: { 200: ObjectDetails },
      errors: ['object_not_found', 'invalid_cursor'],
      handler: async ({ principal, params, query, request }) => {
        const { limit = MOST_VERSIONS, cursor } = query;
        const before = cursor === undefined ? undefined : rowIdCursor(cursor);
        const { details, next } = await objectInspector.describe(principal, params.id, { limit, before });
        if (next !== null) linkHeader(request, { limit, cursor: next });
        request.responseHeaders.etag = `"${details.version_id}"`;
        return details;
      },
    }),
    defineRoute({
      method: 'DELETE',
      path: '/api/storage/{id}',
      name: 'deleteObject',
      audit: 'data',
      tag: 'storage',
      summary: 'Delete an object, or one version permanently',
      permission: 'storage:append',
      params: ObjectPath,
      query: Type.Object({ version_id: Type.Optional(Type.String()) }),
      description:
        'In a versioned bucket this adds a delete marker; `version_id` removes that version permanently. With ' +
        '`If-Match`, deletes only a version that has that `ETag` or `version_id`. A key that has `storage:append` ' +
        'and not `storage:write` can only add a delete marker.',
      responses: { 200: Deleted },
      errors: [
        'object_not_found',
        'version_not_found',
        'object_locked',
        'precondition_failed',
        'write_conflict',
      ],
      handler: (call) => {
        const condition = conditionOf(call.request.headers);
        return removals.remove(call, call.params.id, { versionId: call.query.version_id, condition });
      },
    }),
  ];
}

function changeRoute({ objects }: ObjectRoutesDeps): Route {
  return defineRoute({
    method: 'PATCH',
    path: '/api/storage/{id}',
    name: 'changeObject',
    audit: 'data',
    tag: 'storage',
    summary: 'Change the metadata or the Content-Type of an object',
    description:
      'Bytes are not copied. In a versioned bucket this creates a new version, elsewhere it replaces the object. ' +
      '`If-Match` takes the `ETag` of `GET /api/storage/{id}` (the `version_id`; new after every change) or the content ' +
      '`ETag` (new after every upload).',
    permission: 'storage:write',
    params: ObjectPath,
    body: ObjectChange,
    responses: { 200: Uploaded },
    errors: [
      'object_not_found',
      'precondition_failed',
      'insufficient_credits',
      'quota_exceeded',
      'out_of_space',
      'write_conflict',
    ],
    handler: async (call) => {
      const { request, params, body } = call;
      const { metadata, mime_type, version_id: versionId } = body;
      const changed = await objects.relabel(call, params.id, {
        ...(metadata !== undefined && { metadata: metadataText(metadata) }),
        ...(mime_type !== undefined && { mime_type }),
        condition: seen(versionId, conditionOf(request.headers)),
      });
      request.responseHeaders.etag = `"${changed.version_id}"`;
      return changed;
    },
  });
}

function placeRoutes({ relocations }: ObjectRoutesDeps): Route[] {
  const common = {
    method: 'POST',
    tag: 'storage',
    permission: 'storage:write',
    params: ObjectPath,
    body: ObjectPlace,
    errors: [
      'object_not_found',
      'bucket_not_found',
      'invalid_object_name',
      'precondition_failed',
      'insufficient_credits',
      'quota_exceeded',
      'out_of_space',
      'write_conflict',
    ],
  } as const;
  return [
    defineRoute({
      ...common,
      path: '/api/storage/{id}/copy',
      name: 'copyObject',
      summary: 'Copy an object to another name or bucket',
      description:
        'Copies the current version with type, metadata and tags. The bytes are shared, unless the target bucket encrypts differently.',
      responses: { 201: Uploaded },
      handler: (call) => relocations.copy(call, call.params.id, placeOf(call)),
    }),
    defineRoute({
      ...common,
      path: '/api/storage/{id}/move',
      name: 'moveObject',
      summary: 'Move or rename an object',
      description:
        'Copies the object and deletes the source in one commit. In a versioned bucket, the source gets a delete marker and its versions stay.',
      responses: { 200: Uploaded },
      errors: [...common.errors, 'object_locked'],
      handler: (call) => relocations.move(call, call.params.id, placeOf(call)),
    }),
  ];
}

/** The target of a copy, which is aborted when the client disconnects. */
function placeOf({ body, reply }: Pick<RouteInput<unknown, unknown, ObjectPlace>, 'body' | 'reply'>): Place {
  return { bucket: body.bucket, name: body.name, overwrite: body.overwrite, signal: closeOf(reply) };
}

/** True if the version in the body is current and `more` holds. */
function seen(versionId: string | undefined, more: Condition): Condition {
  const isNamed = conditionOf({ 'if-match': versionId === undefined ? undefined : `"${versionId}"` });
  return (current) => {
    isNamed(current);
    more(current);
  };
}
