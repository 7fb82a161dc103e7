/** Buckets over REST, and restoring them from recovery points. */
import { listPage, Paging, rowIdCursor } from '../../http/list-page.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { Type } from '../../platform/json/json-schema.ts';
import type { PointRestores } from '../points/point-restores.ts';
import {
  Bucket,
  BucketChange,
  BucketPath,
  BucketPoint,
  BucketRestore,
  NewBucket,
  NewBucketRestore,
} from '../schema.ts';
import { assertBucketName } from '../uploads/upload-fields.ts';
import type { BucketEmptier } from './bucket-emptier.ts';
import type { Buckets } from './buckets.ts';

export interface BucketRoutesDeps {
  readonly buckets: Buckets;
  readonly bucketEmptier: BucketEmptier;
  readonly pointRestores: PointRestores;
}

const BUCKET = '/api/buckets/{name}';

export function bucketRoutes(deps: BucketRoutesDeps): Route[] {
  return [...findRoutes(deps), ...changeRoutes(deps), ...pointRoutes(deps)];
}

function findRoutes({ buckets }: BucketRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'POST',
      path: '/api/buckets',
      name: 'createBucket',
      audit: { detail: ['versioning', 'encryption'] },
      tag: 'storage',
      summary: 'Create a bucket',
      permission: 'storage:write',
      body: NewBucket,
      rules: ({ name }) => name !== undefined && assertBucketName(name),
      responses: { 201: Bucket },
      errors: ['invalid_bucket_name', 'bucket_exists', 'insufficient_credits', 'quota_exceeded'],
      handler: (call) => buckets.create(call, call.body),
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
      handler: ({ principal, query, request }) => {
        const { limit, cursor } = query;
        const after = rowIdCursor(cursor);
        const entries = buckets.list(principal, after, limit === undefined ? Infinity : limit + 1);
        return listPage({ request, limit, entries, cursorOf: (bucket) => String(bucket.id) });
      },
    }),
    defineRoute({
      method: 'GET',
      path: BUCKET,
      name: 'getBucket',
      tag: 'storage',
      summary: 'Read a bucket',
      permission: 'storage:read',
      params: BucketPath,
      responses: { 200: Bucket },
      errors: ['bucket_not_found'],
      handler: ({ principal, params }) => buckets.describe(principal, params.name),
    }),
  ];
}

function changeRoutes({ buckets, bucketEmptier }: BucketRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'PATCH',
      path: BUCKET,
      name: 'changeBucket',
      tag: 'storage',
      summary: 'Change versioning or encryption for later uploads',
      permission: 'storage:write',
      params: BucketPath,
      body: BucketChange,
      responses: { 200: Bucket },
      errors: ['bucket_not_found', 'object_locked'],
      handler: (call) => buckets.change(call, call.params.name, call.body),
    }),
    defineRoute({
      method: 'DELETE',
      path: BUCKET,
      name: 'deleteBucket',
      tag: 'storage',
      summary: 'Delete a bucket',
      description:
        'Refused unless the bucket is empty, or `force=true` is set, which first deletes every object and version.',
      permission: 'storage:write',
      params: BucketPath,
      query: Type.Object({ force: Type.Optional(Type.Boolean()) }),
      responses: { 200: Bucket },
      errors: ['bucket_not_found', 'bucket_not_empty', 'object_locked'],
      handler: (call) => {
        const { name } = call.params;
        return call.query.force === true
          ? bucketEmptier.remove(call, name)
          : bucketEmptier.removeEmpty(call, name);
      },
    }),
  ];
}

function pointRoutes({ pointRestores }: BucketRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: `${BUCKET}/points`,
      name: 'listBucketPoints',
      livesOn: 'host',
      tag: 'storage',
      summary: 'List the recovery points that a bucket can be restored from, newest first',
      description:
        'All usable recovery points since your account was created. Also works for a bucket that you deleted in ' +
        'the last 30 days, or created again. `POST /api/buckets/{name}/restore` with `preview` shows what a ' +
        'recovery point contains.',
      permission: 'storage:read',
      params: BucketPath,
      responses: { 200: Type.Array(BucketPoint) },
      errors: ['bucket_not_found'],
      handler: ({ principal, params }) => pointRestores.list(principal, params.name),
    }),
    defineRoute({
      method: 'POST',
      path: `${BUCKET}/restore`,
      name: 'restoreBucket',
      audit: { detail: ['point_id', 'to_bucket', 'preview'] },
      livesOn: 'host',
      tag: 'storage',
      summary: 'Restore a bucket, a folder, an object or a version from a recovery point',
      description:
        'Each object is restored as a new version, with its metadata, tags and lock, and is charged like an upload; ' +
        'with `versions` the whole history is restored. `left_out` lists what cannot be restored unchanged. Objects that ' +
        'already exist are skipped, so an interrupted call can be repeated. For large buckets use ' +
        '`Prefer: respond-async`.',
      permission: 'storage:write',
      isCancellable: true,
      params: BucketPath,
      body: NewBucketRestore,
      responses: { 200: BucketRestore },
      errors: [
        'operation_cancelled',
        'point_not_found',
        'bucket_not_found',
        'object_not_found',
        'version_not_found',
        'encryption_key_not_found',
        'encryption_key_disabled',
        'customer_key_required',
        'invalid_bucket_name',
        'insufficient_credits',
        'quota_exceeded',
        'payload_too_large',
        'data_corrupted',
        'target_unavailable',
        'out_of_space',
        'read_only',
      ],
      handler: (call) => pointRestores.restore(call, call.params.name, call.body),
    }),
  ];
}
