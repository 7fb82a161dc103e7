/** Objects over REST: listed, described, deleted. */
import { jsonTexts, linkHeader, Paging, rowIdCursor } from '../http/list-page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { Type } from '../platform/json-schema.ts';
import type { Browsing } from './browsing.ts';
import { type Condition, conditionOf } from './entries.ts';
import type { Listing, ObjectInspector } from './listing.ts';
import type { Objects } from './objects.ts';
import {
  BucketEntry,
  BucketPath,
  Deleted,
  ObjectChange,
  ObjectDetails,
  ObjectEntry,
  ObjectPath,
  Uploaded,
  VersionChoice,
} from './schema.ts';
import { metadataText } from './upload-fields.ts';

export interface ObjectRoutesDeps {
  readonly objects: Objects;
  readonly listing: Listing;
  readonly browsing: Browsing;
  readonly objectInspector: ObjectInspector;
}

const MOST_VERSIONS = 1000;
/** Entries of a page, unless the caller says. */
const BROWSED = 100;
const VersionLimit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: MOST_VERSIONS, default: MOST_VERSIONS, description: 'Of versions' }),
);

export function objectRoutes(deps: ObjectRoutesDeps): Route[] {
  return [...listRoutes(deps), ...singleRoutes(deps), changeRoute(deps)];
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
        return jsonTexts(page.entries);
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/buckets/{name}/browse',
      name: 'browseBucket',
      tag: 'storage',
      summary: 'Show a bucket as folders, or find objects by a part of their names',
      description:
        '"/" in names stands for folders: what is directly in the folder `prefix` is listed. With `search`, the ' +
        'objects in it and in all folders below whose names have that; letters from A to Z match in either case. ' +
        'By size or time, folders come first. With `deleted`, by name: what was deleted and can be restored.',
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
      handler: async ({ principal, params, query, request }) => {
        const { prefix = '', limit = BROWSED } = query;
        const page = await browsing.page(principal, params.name, { ...query, prefix, limit });
        if (page.next !== null) linkHeader(request, { ...query, limit, cursor: page.next });
        return page.entries;
      },
    }),
  ];
}

function singleRoutes({ objects, objectInspector }: ObjectRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/storage/{id}/restore',
      name: 'restoreObject',
      tag: 'storage',
      summary: 'Restore an earlier version',
      description: 'As a new version with the same bytes; no version is lost.',
      permission: 'storage:write',
      params: ObjectPath,
      body: VersionChoice,
      responses: { 200: Uploaded },
      errors: [
        'object_not_found',
        'version_not_found',
        'insufficient_credits',
        'quota_exceeded',
        'write_conflict',
      ],
      handler: (call) => objects.restore(call, { objectId: call.params.id, versionId: call.body.version_id }),
    }),
    defineRoute({
      method: 'GET',
      path: '/api/storage/{id}',
      name: 'getObject',
      tag: 'storage',
      summary: 'Read the record of an object and its versions',
      description:
        'At most `limit` versions at a time; when there are more, `versions_truncated` is true and the `Link` header names the next page.',
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
      tag: 'storage',
      summary: 'Delete an object, or one version for good',
      permission: 'storage:write',
      params: ObjectPath,
      query: Type.Object({ version_id: Type.Optional(Type.String()) }),
      description:
        'In a versioned bucket a delete marker is put on top; `version_id` removes that version for good. With ' +
        '`If-Match`, only if what goes has that `ETag` or `version_id`.',
      responses: { 200: Deleted },
      errors: ['object_not_found', 'version_not_found', 'precondition_failed', 'write_conflict'],
      handler: (call) => {
        const condition = conditionOf(call.request.headers);
        return objects.remove(call, call.params.id, { versionId: call.query.version_id, condition });
      },
    }),
  ];
}

function changeRoute({ objects }: ObjectRoutesDeps): Route {
  return defineRoute({
    method: 'PATCH',
    path: '/api/storage/{id}',
    name: 'changeObject',
    tag: 'storage',
    summary: 'Change the metadata or the type of an object',
    description:
      'Its bytes are not copied. In a versioned bucket this is a new version, elsewhere it replaces what was there. ' +
      'With `If-Match` only if nobody has changed the object since: its tag is the `ETag` of `GET /api/storage/{id}` ' +
      '(the `version_id`), which each change renews, or that of the bytes, which another upload does.',
    permission: 'storage:write',
    params: ObjectPath,
    body: ObjectChange,
    responses: { 200: Uploaded },
    errors: [
      'object_not_found',
      'precondition_failed',
      'insufficient_credits',
      'quota_exceeded',
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

/** The version that a body names is the current one, and `more` holds. */
function seen(versionId: string | undefined, more: Condition): Condition {
  const isNamed = conditionOf({ 'if-match': versionId === undefined ? undefined : `"${versionId}"` });
  return (current) => {
    isNamed(current);
    more(current);
  };
}
