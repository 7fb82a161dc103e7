/** Earlier versions, and presigned URLs. */

import { pathOf, presignedUrl } from '../../libs/s3-wire/index.ts';
import type { Cloud, StorageObject } from '../../sdk/index.ts';
import type { Command, Invocation } from '../command.ts';
import { ClientError, EXIT, UsageError } from '../failures.ts';
import { signerWith } from '../s3/requests.ts';
import { below, isAboutMany, LITERAL, PATHS_DETAILS } from './below.ts';
import { type RemoteLocation, remoteObject, remoteOnly, shown } from './locations.ts';

const HOUR_SECONDS = 3600;
const LONGEST_SECONDS = 7 * 24 * HOUR_SECONDS;
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: HOUR_SECONDS, d: 24 * HOUR_SECONDS };
const EXPIRES = { value: 'TIME', summary: 'valid for 30s, 15m, 12h or 7d; default: 1h' } as const;

export const VERSION_COMMANDS: readonly Command[] = [
  {
    name: 'restore',
    words: 'OBJECT',
    summary: 'make an earlier version the latest; no version is lost',
    options: {
      version: { value: 'ID', summary: 'version to restore (see ls --versions)' },
      at: { value: 'TIME', summary: 'version that was the latest at this time: 2026-05-31T12:00:00Z' },
    },
    run: restore,
  },
  {
    name: 'undelete',
    words: 'PATH',
    summary: 'restore a deleted object, or with -r all deleted objects of a folder',
    details: PATHS_DETAILS,
    options: { recursive: { short: 'r', summary: 'restore all deleted objects in the folder' }, ...LITERAL },
    run: undelete,
  },
  {
    name: 'presign',
    words: 'OBJECT',
    summary: 'print a presigned URL to download or upload an object',
    options: { expires: EXPIRES, put: { summary: 'sign an upload (PUT)' } },
    run: async (call) => {
      const { bucket, key } = remoteObject(call.words[0] ?? '');
      const method = call.options.has('put') ? 'PUT' : 'GET';
      const seconds = secondsOf(call.options.text('expires') ?? '1h');
      const asked = { method, path: pathOf(bucket, key), query: {} };
      if (call.session().profileName === null)
        call.output.note('the URL is signed with a temporary key and stops working when that key expires');
      const keys = await call.session().s3Keys();
      const url = presignedUrl(asked, { origin: keys.endpoint, seconds }, signerWith(keys));
      call.output.one({ url, method, expires_in: seconds }, () => [url]);
    },
  },
];

/** Throws UsageError if the text is not a duration, or is longer than a week. */
export function secondsOf(text: string): number {
  const [, count, unit = 's'] = /^(\d+)([smhd]?)$/.exec(text) ?? [];
  const seconds = Number(count) * (UNITS[unit || 's'] ?? 1);
  if (seconds >= 1 && seconds <= LONGEST_SECONDS) return seconds;
  throw new UsageError(`${text} is not a duration from 1s to 7d`);
}

/** The object with that name, deleted or not. Throws ClientError if there never was one. */
async function find(cloud: Cloud, location: RemoteLocation): Promise<StorageObject> {
  const { bucket, key: prefix } = location;
  for await (const object of cloud.listObjects(bucket, { prefix, include_versions: true })) {
    if (object.name === prefix) return object;
    break;
  }
  throw new ClientError(`there is no object ${shown(location)}`, EXIT.notFound);
}

async function restore(call: Invocation): Promise<void> {
  const { options, output } = call;
  const { cloud } = call.session();
  const [version, at] = [options.text('version'), options.text('at')];
  if ((version === undefined) === (at === undefined)) throw new UsageError('give --version ID or --at TIME');
  const location = remoteObject(call.words[0] ?? '');
  const { id } = await find(cloud, location);
  const restored = await cloud.restoreObject(id, {
    version_id: version ?? (await versionAt(cloud, location, at ?? '')),
  });
  output.one(restored, () => [`${shown(location)} is now version ${restored.version_id}`]);
}

/** The version that was the latest at that time. */
async function versionAt(cloud: Cloud, { bucket, key }: RemoteLocation, text: string): Promise<string> {
  const wanted = Date.parse(text);
  if (!Number.isFinite(wanted)) throw new UsageError(`${text} is not a time such as 2026-05-31T12:00:00Z`);
  // Newest first, by page; longer names with this prefix come later.
  for await (const each of cloud.listObjects(bucket, { prefix: key, include_versions: true })) {
    if (each.name !== key) break;
    if (Date.parse(`${each.created_at.replace(' ', 'T')}Z`) > wanted) continue;
    if (each.is_delete_marker === true)
      throw new ClientError(`the object was deleted at ${text}`, EXIT.notFound);
    return each.version_id ?? '';
  }
  throw new ClientError(`the object had no version at ${text}`, EXIT.notFound);
}

async function undelete(call: Invocation): Promise<void> {
  const { output } = call;
  const location = remoteOnly(call.words[0] ?? '');
  const { cloud } = call.session();
  const isMany = isAboutMany(location, call);
  const { prefix, has } = isMany ? below(location, call) : { prefix: location.key, has: () => true };
  const query = { prefix, include_versions: true };
  let [count, name, isDeleted] = [0, '', false];
  // Versions are listed by name, newest first: the second entry of a deleted name is its content.
  for await (const each of cloud.listObjects(location.bucket, query)) {
    // Longer names with this prefix come later.
    if (!isMany && each.name !== location.key) break;
    if (!has(each.name)) continue;
    if (each.name !== name) [name, isDeleted] = [each.name, each.is_delete_marker === true];
    else if (isDeleted && each.is_delete_marker !== true) {
      await cloud.restoreObject(each.id, { version_id: each.version_id ?? '' });
      const restored = { bucket: location.bucket, key: each.name };
      output.one(restored, () => [`restored: ${shown(restored)}`]);
      isDeleted = false;
      count += 1;
    }
  }
  if (count === 0) throw new ClientError(`no deleted objects at ${shown(location)}`, EXIT.notFound);
}
