/**
 * A bucket's S3 settings as JSON, for the console and for programs without an S3 client. Each is
 * checked by the code that reads S3's own document for it: it is written as that document and read
 * again.
 */

import { S3Error } from '../../../libs/s3-wire/index.ts';
import type { AccountDirectory } from '../../accounts/directory.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { ScanTurns } from '../../platform/concurrency.ts';
import { assertFields, type FieldProblem, invalidField } from '../../platform/errors.ts';
import {
  type AccountName,
  type BucketSettings,
  type SettingsChange,
  settingsOf,
} from '../../storage/buckets/bucket-settings.ts';
import type { Buckets } from '../../storage/buckets/buckets.ts';
import {
  BucketSettingsChange,
  BucketSettingsShown,
  isPlain,
  memberOf,
  type PlainName,
  SETTING_NAMES,
  shown,
  storedOf,
} from '../../storage/buckets/setting-entries.ts';
import { BucketPath } from '../../storage/schema.ts';
import { assertPublicAllowed, writtenGrants } from '../access/new-acl.ts';
import { assertNotBlocked, newPolicy } from '../access/policy-operations.ts';
import { SETTINGS, type Setting } from './setting-operations.ts';

export interface SettingRoutesDeps {
  readonly buckets: Buckets;
  readonly accounts: AccountDirectory;
}

const PATH = '/api/buckets/{name}/settings';

export function settingRoutes({ buckets, accounts }: SettingRoutesDeps): Route[] {
  const turns = new ScanTurns();
  return [
    defineRoute({
      method: 'GET',
      path: PATH,
      name: 'getBucketSettings',
      tag: 'storage',
      summary: 'Read the S3 settings of a bucket',
      description: 'A setting that is not set is null.',
      permission: 'storage:read',
      params: BucketPath,
      responses: { 200: BucketSettingsShown },
      errors: ['bucket_not_found'],
      handler: async ({ principal, params }) =>
        shown(settingsOf(await buckets.find(principal, params.name)), principal.canonicalId),
    }),
    defineRoute({
      method: 'PATCH',
      path: PATH,
      name: 'changeBucketSettings',
      tag: 'storage',
      summary: 'Change the S3 settings of a bucket',
      description:
        'Each setting is replaced as a whole; null removes it, and others stay as they are. ' +
        'Object lock stays once it is set, and needs versioning.',
      permission: 'storage:admin',
      params: BucketPath,
      body: BucketSettingsChange,
      maxBodyBytes: 256 * 1024,
      responses: { 200: BucketSettingsShown },
      errors: ['bucket_not_found', 'object_locked'],
      handler: async (call) => {
        const { name } = call.params;
        const { accountId, canonicalId: id, username } = call.principal;
        const owner = { id, name: username };
        // A thousand rules take some 20 ms, so one call runs per turn of the event loop.
        const read = () => checked({ accounts, bucket: name, owner, body: call.body });
        const changed = await turns.read(accountId, read);
        const check = (present: BucketSettings) => assertAllowed({ bucket: name, owner, changed, present });
        const answer = (settings: BucketSettings) => shown(settings, id);
        return buckets.configureAll(call, name, { changed, check, answer });
      },
    }),
  ];
}

interface Given {
  readonly accounts: AccountDirectory;
  readonly bucket: string;
  readonly owner: AccountName;
  readonly body: BucketSettingsChange;
}

/** The settings in stored form. Throws `invalid_request` that lists every invalid one. */
async function checked({ accounts, bucket, owner, body }: Given): Promise<SettingsChange> {
  const fields: FieldProblem[] = [];
  const attempt = async (field: string, read: () => unknown) => {
    try {
      return await read();
    } catch (error) {
      if (!(error instanceof S3Error)) throw error;
      fields.push({ field, message: error.message });
      return undefined;
    }
  };
  const found: [string, unknown][] = [];
  for (const name of SETTING_NAMES.filter(isPlain)) {
    const value = body[memberOf(name)];
    if (value === undefined) continue;
    found.push([name, value === null ? undefined : await attempt(memberOf(name), () => reread(name, value))]);
  }
  const { acl, policy } = body;
  if (acl !== undefined) {
    const own = { ...owner, permission: 'FULL_CONTROL' } as const;
    const read = async () => [own, ...(await writtenGrants(acl ?? [], accounts))];
    found.push(['acl', acl === null ? undefined : await attempt('acl', read)]);
  }
  if (policy !== undefined) {
    const read = () => newPolicy(accounts, bucket, JSON.stringify(policy));
    found.push(['policy', policy === null ? undefined : await attempt('policy', read)]);
  }
  assertFields(fields);
  return Object.fromEntries(found);
}

/** Throws S3Error. */
function reread<N extends PlainName>(name: N, value: unknown): NonNullable<BucketSettings[N]> {
  const setting = SETTINGS[name] as Setting<N> | null;
  const stored = storedOf(name, value);
  return setting === null ? stored : setting.read(Buffer.from(setting.write(stored)));
}

/** A setting in its stored form. Throws `invalid_request`. */
export function readSetting<N extends PlainName>(name: N, value: unknown): NonNullable<BucketSettings[N]> {
  try {
    return reread(name, value);
  } catch (error) {
    throw error instanceof S3Error ? invalidField(memberOf(name), error.message) : error;
  }
}

interface Fit {
  readonly bucket: string;
  readonly owner: AccountName;
  readonly changed: SettingsChange;
  readonly present: BucketSettings;
}

/** Throws `invalid_request` if the settings conflict. */
function assertAllowed({ bucket, owner, changed, present }: Fit): void {
  const { policy, acl, ownership } = changed;
  const after = <N extends keyof SettingsChange>(name: N) => (name in changed ? changed : present)[name];
  const attempt = (field: string, check: () => void) => {
    try {
      check();
    } catch (error) {
      throw error instanceof S3Error ? invalidField(field, error.message) : error;
    }
  };
  if (policy !== undefined) attempt('policy', () => assertNotBlocked(policy, bucket, after('publicAccess')));
  if (acl !== undefined) attempt('acl', () => assertPublicAllowed(after('publicAccess'), acl));
  const wanted = after('ownership');
  if ((ownership ?? acl) === undefined || wanted === undefined) return;
  const lists = { acl: after('acl') ?? [] };
  attempt(ownership === undefined ? 'acl' : 'ownership', () =>
    SETTINGS.ownership?.check?.(wanted, lists, owner),
  );
}
