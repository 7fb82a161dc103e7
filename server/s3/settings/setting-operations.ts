/** Bucket settings that are one document each: read, replaced and removed as a whole. */
import type { IncomingHttpHeaders } from 'node:http';
import { type S3Code, S3Error } from '../../../libs/s3-wire/index.ts';
import { isAppError } from '../../platform/errors.ts';
import {
  type AccountName,
  type BucketSettings,
  type SettingName,
  settingsOf,
} from '../../storage/buckets/bucket-settings.ts';
import type { PlainName } from '../../storage/buckets/setting-entries.ts';
import { grantsToOthers } from '../access/grants.ts';
import {
  ACCESS_MAX_BYTES,
  ownershipDocument,
  publicAccessDocument,
  readOwnership,
  readPublicAccess,
} from '../access/public-access.ts';
import { CORS_MAX_BYTES, corsDocument, readCors } from '../buckets/cors.ts';
import { LOCK_MAX_BYTES, lockConfigurationDocument, readLockConfiguration } from '../objects/lock.ts';
import { MAX_BUCKET_TAGS, readTags, TAGS_MAX_BYTES, tagsDocument, tagsFrom } from '../objects/tags.ts';
import { type Action, bucketOf, ownerOf, type S3Call, type S3Operation } from '../s3-call.ts';
import { LIFECYCLE_MAX_BYTES, lifecycleDocument, lifecycleHeaders, readLifecycle } from './lifecycle.ts';

/** A bucket setting for S3 clients. */
export interface Setting<N extends SettingName> {
  readonly setting: N;
  /** The query parameter. */
  readonly query: string;
  /** AWS' names of its operations. */
  readonly names: readonly [get: string, put: string, remove?: string];
  /** Their actions; often, removing requires the action for setting. */
  readonly actions: readonly [get: Action, put: Action, remove?: Action];
  /** The error for reading it when not set. */
  readonly absent: S3Code;
  /** The error code if the state of the bucket does not allow it. */
  readonly refused?: S3Code;
  readonly maxBytes: number;
  /** Throws S3Error. */
  readonly read: (body: Buffer, headers?: IncomingHttpHeaders) => NonNullable<BucketSettings[N]>;
  readonly write: (value: NonNullable<BucketSettings[N]>) => string;
  /** Additional headers of the responses that show or set it. */
  readonly headers?: (value: NonNullable<BucketSettings[N]>) => Record<string, string>;
  /** Status after PUT; default 200. */
  readonly status?: number;
  /** Throws if the other settings do not allow it. */
  readonly check?: (
    value: NonNullable<BucketSettings[N]>,
    present: BucketSettings,
    owner: AccountName,
  ) => void;
}

function operationsOf<N extends SettingName>({
  setting,
  query,
  names,
  actions,
  ...how
}: Setting<N>): S3Operation[] {
  const [get, put, remove] = names;
  const [getAction, putAction, removeAction] = actions;
  const one = { level: 'bucket', query: [query] } as const;
  const set = async (call: S3Call, value?: BucketSettings[N]): Promise<void> => {
    const { name } = await bucketOf(call);
    try {
      await call.tools.storage.buckets.configure(call, name, [setting, value], (present) => {
        if (value !== undefined) how.check?.(value, present, ownerOf(call.who));
      });
    } catch (error) {
      if (how.refused === undefined || !isAppError(error, 'object_locked')) throw error;
      throw new S3Error(how.refused, error.message);
    }
  };
  const operations: S3Operation[] = [
    {
      ...one,
      name: get,
      action: getAction,
      method: 'GET',
      permission: 'storage:read',
      run: async (call) => {
        const value = settingsOf(await bucketOf(call))[setting];
        if (value === undefined) throw new S3Error(how.absent);
        return { headers: how.headers?.(value) ?? {}, xml: how.write(value) };
      },
    },
    {
      ...one,
      name: put,
      action: putAction,
      method: 'PUT',
      permission: 'storage:admin',
      run: async (call) => {
        const value = how.read(await call.what.body.whole(how.maxBytes), call.what.headers);
        await set(call, value);
        return { status: how.status ?? 200, headers: how.headers?.(value) ?? {} };
      },
    },
  ];
  if (remove !== undefined) {
    operations.push({
      ...one,
      name: remove,
      action: removeAction ?? putAction,
      method: 'DELETE',
      permission: 'storage:admin',
      run: async (call) => {
        await set(call);
        return { status: 204 };
      },
    });
  }
  return operations;
}

/**
 * By name; null: S3 has no document for it. The JSON API checks its input with them. Policies and
 * ACLs have rules beyond their documents, in access/.
 */
export const SETTINGS: { readonly [N in PlainName]: Setting<N> | null } = {
  tags: {
    setting: 'tags',
    query: 'tagging',
    names: ['GetBucketTagging', 'PutBucketTagging', 'DeleteBucketTagging'],
    actions: ['s3:GetBucketTagging', 's3:PutBucketTagging', 's3:PutBucketTagging'],
    absent: 'NoSuchTagSet',
    maxBytes: TAGS_MAX_BYTES,
    read: (body) => tagsFrom(readTags(body), MAX_BUCKET_TAGS),
    write: tagsDocument,
    status: 204,
  },
  dataEvents: null,
  cors: {
    setting: 'cors',
    query: 'cors',
    names: ['GetBucketCors', 'PutBucketCors', 'DeleteBucketCors'],
    actions: ['s3:GetBucketCORS', 's3:PutBucketCORS', 's3:PutBucketCORS'],
    absent: 'NoSuchCORSConfiguration',
    maxBytes: CORS_MAX_BYTES,
    read: readCors,
    write: corsDocument,
  },
  lifecycle: {
    setting: 'lifecycle',
    query: 'lifecycle',
    names: ['GetBucketLifecycleConfiguration', 'PutBucketLifecycleConfiguration', 'DeleteBucketLifecycle'],
    actions: ['s3:GetLifecycleConfiguration', 's3:PutLifecycleConfiguration', 's3:PutLifecycleConfiguration'],
    absent: 'NoSuchLifecycleConfiguration',
    maxBytes: LIFECYCLE_MAX_BYTES,
    read: readLifecycle,
    write: lifecycleDocument,
    headers: lifecycleHeaders,
  },
  lock: {
    setting: 'lock',
    query: 'object-lock',
    names: ['GetObjectLockConfiguration', 'PutObjectLockConfiguration'],
    actions: ['s3:GetBucketObjectLockConfiguration', 's3:PutBucketObjectLockConfiguration'],
    absent: 'ObjectLockConfigurationNotFoundError',
    refused: 'InvalidBucketState',
    maxBytes: LOCK_MAX_BYTES,
    read: readLockConfiguration,
    write: lockConfigurationDocument,
  },
  publicAccess: {
    setting: 'publicAccess',
    query: 'publicAccessBlock',
    names: ['GetPublicAccessBlock', 'PutPublicAccessBlock', 'DeletePublicAccessBlock'],
    actions: [
      's3:GetBucketPublicAccessBlock',
      's3:PutBucketPublicAccessBlock',
      's3:PutBucketPublicAccessBlock',
    ],
    absent: 'NoSuchPublicAccessBlockConfiguration',
    maxBytes: ACCESS_MAX_BYTES,
    read: readPublicAccess,
    write: publicAccessDocument,
  },
  ownership: {
    setting: 'ownership',
    query: 'ownershipControls',
    names: ['GetBucketOwnershipControls', 'PutBucketOwnershipControls', 'DeleteBucketOwnershipControls'],
    actions: [
      's3:GetBucketOwnershipControls',
      's3:PutBucketOwnershipControls',
      's3:PutBucketOwnershipControls',
    ],
    absent: 'OwnershipControlsNotFoundError',
    maxBytes: ACCESS_MAX_BYTES,
    read: readOwnership,
    write: ownershipDocument,
    check: (value, { acl = [] }, owner) => {
      if (value !== 'BucketOwnerEnforced' || !grantsToOthers(acl, owner)) return;
      throw new S3Error('InvalidBucketAclWithObjectOwnership');
    },
  },
};

export const SETTING_OPERATIONS: readonly S3Operation[] = Object.values(SETTINGS).flatMap((each) =>
  each === null ? [] : operationsOf(each as unknown as Setting<SettingName>),
);
