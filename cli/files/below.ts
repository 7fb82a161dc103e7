/**
 * The objects that a location selects, with one meaning for all commands. `s3://b/photos` and
 * `s3://b/photos/` are the folder, never `photos-old` or `photos.txt`; other names with that prefix
 * need a wildcard.
 */
import type { Invocation, Option } from '../command.ts';
import { ClientError, EXIT } from '../failures.ts';
import type { ListedObject, ListedVersion } from '../s3/s3-client.ts';
import { isPattern, matcher, type RemoteLocation, shown } from './locations.ts';
import { s3Of } from './transfer.ts';

/** Option of commands that accept wildcards. */
export const LITERAL: Readonly<Record<string, Option>> = {
  literal: { summary: 'take * and ? in names literally ([ always is literal)' },
};

/** Details for the help of these commands. */
export const PATHS_DETAILS = [
  'A path is a folder: s3://b/photos is the content of photos/, not photos-old. * and ? match within a folder,',
  "** across folders: 's3://b/photos**' is every name with that prefix. --literal: names that contain * or ?.",
].join('\n');

export interface Below {
  /** Common prefix of all selected names; other names may have it too. */
  readonly prefix: string;
  /** The folder that they are in, up to its `/`. */
  readonly folder: string;
  has(name: string): boolean;
}

type Options = Pick<Invocation, 'options'>;

/** Whether the location names objects by wildcards. */
export function hasWildcards({ key }: RemoteLocation, { options }: Options): boolean {
  return isPattern(key) && !options.has('literal');
}

/** Whether the command affects everything below the location, not one object with that name. */
export function isAboutMany(location: RemoteLocation, call: Options): boolean {
  return call.options.has('recursive') || hasWildcards(location, call);
}

/** The objects of a folder, or those that a pattern matches. */
export function below(location: RemoteLocation, call: Options): Below {
  const { key } = location;
  if (hasWildcards(location, call)) {
    const prefix = key.split(/[*?]/, 1)[0] ?? '';
    const has = matcher(key.endsWith('/') ? `${key}**` : key);
    return { prefix, folder: prefix.slice(0, prefix.lastIndexOf('/') + 1), has };
  }
  const folder = folderKey(key);
  return { prefix: folder, folder, has: () => true };
}

/** `photos` and `photos/` → `photos/`; empty: the whole bucket. */
export function folderKey(key: string): string {
  return key === '' || key.endsWith('/') ? key : `${key}/`;
}

/** The objects below a location. Throws S3Failure. */
export async function* objectsAt(call: Invocation, location: RemoteLocation): AsyncGenerator<ListedObject> {
  const s3 = await s3Of(call);
  const { prefix, has } = below(location, call);
  for await (const entry of s3.list(location.bucket, prefix))
    if ('object' in entry && has(entry.object.key)) yield entry.object;
}

/** Their versions and delete markers. Throws S3Failure. */
export async function* versionsAt(call: Invocation, location: RemoteLocation): AsyncGenerator<ListedVersion> {
  const s3 = await s3Of(call);
  const { prefix, has } = below(location, call);
  for await (const version of s3.versions(location.bucket, prefix)) if (has(version.key)) yield version;
}

/** The object with exactly this name; undefined for a folder, a pattern, or no match. */
export async function objectNamed(
  call: Invocation,
  location: RemoteLocation,
): Promise<ListedObject | undefined> {
  const { bucket, key } = location;
  if (key === folderKey(key) || hasWildcards(location, call)) return undefined;
  // Longer names with this prefix come later.
  for await (const entry of (await s3Of(call)).list(bucket, key))
    return 'object' in entry && entry.object.key === key ? entry.object : undefined;
  return undefined;
}

/** The error for a location without objects, with a hint of the intent. `isMany`: a folder is meant. */
export async function nothingAt(
  call: Invocation,
  location: RemoteLocation,
  isMany: boolean = isAboutMany(location, call),
): Promise<ClientError> {
  const what = isMany ? 'no objects' : 'no object';
  const hint = await hintFor(call, location, isMany);
  return new ClientError(`${what} at ${shown(location)}`, EXIT.notFound, hint);
}

async function hintFor(
  call: Invocation,
  location: RemoteLocation,
  isMany: boolean,
): Promise<string | undefined> {
  const { bucket, key } = location;
  if (key === '' || hasWildcards(location, call)) return undefined;
  for await (const entry of (await s3Of(call)).list(bucket, isMany ? key : folderKey(key))) {
    if (!('object' in entry)) return undefined;
    if (!isMany) return 'A folder has that name: use -r';
    if (entry.object.key === key) return 'An object has that name: leave out -r';
    return `Some object names begin with this text, such as ${shown({ bucket, key: entry.object.key })}: to match them, add **`;
  }
  return undefined;
}
