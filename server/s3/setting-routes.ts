/**
 * A bucket's settings of S3 as JSON, for the console and for programs without an S3 client. Each is checked
 * by the code that reads S3's own document of it: it is written as that document and read again.
 */
import { defineRoute, type Route } from '../http/route.ts';
import { assertFields, type FieldProblem } from '../platform/errors.ts';
import { type BucketSettings, type SettingsChange, settingsOf } from '../storage/bucket-settings.ts';
import type { Buckets } from '../storage/buckets.ts';
import { BucketPath } from '../storage/schema.ts';
import { S3Error } from './s3-error.ts';
import { SETTINGS, type Setting } from './setting-operations.ts';
import {
  BucketSettingsChange,
  BucketSettingsShown,
  type JsonSettingName,
  READERS,
  shown,
} from './setting-schema.ts';

export interface SettingRoutesDeps {
  readonly buckets: Buckets;
}

const PATH = '/api/buckets/{name}/settings';

export function settingRoutes({ buckets }: SettingRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: PATH,
      name: 'getBucketSettings',
      tag: 'storage',
      summary: 'Read what S3 clients can set on a bucket',
      description: 'A setting that is not set is null.',
      permission: 'storage:read',
      params: BucketPath,
      responses: { 200: BucketSettingsShown },
      errors: ['bucket_not_found'],
      handler: async ({ principal, params }) => shown(settingsOf(await buckets.find(principal, params.name))),
    }),
    defineRoute({
      method: 'PATCH',
      path: PATH,
      name: 'changeBucketSettings',
      tag: 'storage',
      summary: 'Change what S3 clients can set on a bucket',
      description:
        'Each setting is replaced as a whole; null removes it, and others stay as they are. ' +
        'Object lock stays once it is set, and needs versioning.',
      permission: 'storage:admin',
      params: BucketPath,
      body: BucketSettingsChange,
      maxBodyBytes: 256 * 1024,
      responses: { 200: BucketSettingsShown },
      errors: ['bucket_not_found', 'object_locked'],
      handler: (call) => {
        const changed = checked(call.body);
        return buckets.configureAll(call, call.params.name, { changed, answer: shown });
      },
    }),
  ];
}

/** The settings in their stored form. Throws `invalid_request` with every one that is not valid. */
function checked(body: BucketSettingsChange): SettingsChange {
  const fields: FieldProblem[] = [];
  const found = (Object.keys(READERS) as JsonSettingName[])
    .filter((name) => body[name] !== undefined)
    .map((name) => {
      try {
        return [name, body[name] === null ? undefined : reread(name, body[name])];
      } catch (error) {
        if (!(error instanceof S3Error)) throw error;
        fields.push({ field: name, message: error.message });
        return [name, undefined];
      }
    });
  assertFields(fields);
  return Object.fromEntries(found);
}

function reread<N extends JsonSettingName>(name: N, value: unknown): BucketSettings[N] {
  const setting = SETTINGS[name] as unknown as Setting<N>;
  const stored = READERS[name](value as never) as NonNullable<BucketSettings[N]>;
  return setting.read(Buffer.from(setting.write(stored)));
}
