/** Commands that list buckets and objects, and create and delete buckets. */
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { CloudError } from '../../sdk/index.ts';
import type { Command, Invocation } from '../command.ts';
import { ClientError, EXIT } from '../failures.ts';
import { counted, sizeText } from '../output.ts';
import type { ListedObject, ListedVersion } from '../s3/s3-client.ts';
import { S3Failure } from '../s3/s3-failure.ts';
import {
  below,
  folderKey,
  hasWildcards,
  LITERAL,
  nothingAt,
  objectNamed,
  objectsAt,
  PATHS_DETAILS,
  versionsAt,
} from './below.ts';
import { type RemoteLocation, remoteBucket, remoteObject, remoteOnly, shown } from './locations.ts';
import { s3Of } from './transfer.ts';

const HEAD_BYTES = 1024;
const SIZE_WIDTH = 10;

export const BROWSE_COMMANDS: readonly Command[] = [
  {
    name: 'mb',
    words: 'BUCKET',
    summary: 'create a bucket',
    run: async (call) => {
      const bucket = remoteBucket(call.words[0] ?? '');
      const s3 = await s3Of(call);
      // S3 accepts creating a bucket again by its owner.
      const { cloud } = call.session();
      const isThere = await cloud.getBucket(bucket).then(
        () => true,
        () => false,
      );
      await s3.createBucket(bucket);
      call.output.one({ bucket }, () => [`s3://${bucket} ${isThere ? 'exists already' : 'is created'}`]);
    },
  },
  {
    name: 'rb',
    words: 'BUCKET',
    summary: 'remove an empty bucket',
    run: removeBucket,
  },
  {
    name: 'ls',
    words: '[PATH]',
    summary: 'list buckets, or the content of one: s3://BUCKET/FOLDER',
    details: PATHS_DETAILS,
    options: {
      recursive: { short: 'r', summary: 'include subfolders' },
      long: { short: 'l', summary: 'show ETags' },
      versions: { summary: 'show all versions and delete markers' },
      ...LITERAL,
    },
    run: list,
  },
  {
    name: 'tree',
    words: 'PATH',
    summary: 'show the content of a bucket or folder as a tree',
    details: PATHS_DETAILS,
    options: LITERAL,
    run: tree,
  },
  {
    name: 'du',
    words: 'PATH',
    summary: 'show the total size of a bucket or folder',
    details: PATHS_DETAILS,
    options: LITERAL,
    run: async (call) => {
      const location = remoteOnly(call.words[0] ?? '');
      const { count, bytes } = await sizeOf(call, location);
      call.output.one({ objects: count, bytes }, () => [
        `${sizeText(bytes)}  ${counted(count, 'object')}  ${shown(location)}`,
      ]);
    },
  },
  {
    name: 'stat',
    words: 'OBJECT',
    summary: 'show size, type, checksum and metadata of an object',
    options: { version: { value: 'ID', summary: 'version of the object; default: the latest' } },
    run: stat,
  },
  {
    name: 'cat',
    words: 'OBJECT…',
    summary: 'write objects to standard output',
    options: { version: { value: 'ID', summary: 'version of the object; default: the latest' } },
    run: async (call) => {
      for (const word of call.words) await print(call, remoteObject(word), {});
    },
  },
  {
    name: 'head',
    words: 'OBJECT',
    summary: `write the first bytes of an object (${HEAD_BYTES}, or -c N)`,
    options: { bytes: { short: 'c', value: 'N', summary: 'number of bytes' } },
    run: async (call) => {
      const bytes = call.options.count('bytes', HEAD_BYTES);
      await print(call, remoteObject(call.words[0] ?? ''), { range: `bytes=0-${bytes - 1}` });
    },
  },
];

function noteSkipped({ output }: Invocation, location: RemoteLocation): void {
  output.note(`skipping the object ${shown(location)}: a folder has the same name`);
}

/** The objects below the location, or else the object with that name. */
async function* shownAt(call: Invocation, location: RemoteLocation): AsyncGenerator<ListedObject> {
  const named = await objectNamed(call, location);
  let isFolder = false;
  for await (const object of objectsAt(call, location)) {
    if (!isFolder && named !== undefined) noteSkipped(call, location);
    isFolder = true;
    yield object;
  }
  if (!isFolder && named !== undefined) yield named;
}

interface Size {
  readonly count: number;
  readonly bytes: number;
}

/** The cloud counts the caller's own folders; other folders are counted from a listing. */
async function sizeOf(call: Invocation, location: RemoteLocation): Promise<Size> {
  const counted = hasWildcards(location, call) ? undefined : await countedSize(call, location);
  if (counted !== undefined && counted.count > 0) {
    if ((await objectNamed(call, location)) !== undefined) noteSkipped(call, location);
    return counted;
  }
  let [count, bytes] = [0, 0];
  for await (const { size } of shownAt(call, location)) [count, bytes] = [count + 1, bytes + size];
  return { count, bytes };
}

/** Undefined: a bucket of another account, or a cloud that has no such call. */
async function countedSize(call: Invocation, { bucket, key }: RemoteLocation): Promise<Size | undefined> {
  const { cloud } = call.session();
  const prefix = folderKey(key);
  let [count, bytes] = [0, 0];
  let asked: { prefix: string; cursor?: string } = { prefix };
  for (;;) {
    try {
      const { object_count, size, next_cursor } = await cloud.getFolderSize(bucket, asked);
      [count, bytes] = [count + object_count, bytes + size];
      if (next_cursor === null) return { count, bytes };
      asked = { prefix, cursor: next_cursor };
    } catch (error) {
      if (error instanceof CloudError && NOT_COUNTED.has(error.status)) return undefined;
      throw error;
    }
  }
}

const NOT_COUNTED: ReadonlySet<number> = new Set([403, 404]);

async function removeBucket(call: Invocation): Promise<void> {
  const bucket = remoteBucket(call.words[0] ?? '');
  await (await s3Of(call)).deleteBucket(bucket).catch((error) => {
    if (!(error instanceof S3Failure) || error.code !== 'BucketNotEmpty') throw error;
    const all = `cloudlet rm -r s3://${bucket}`;
    throw new ClientError(
      `s3://${bucket} is not empty: it has objects, old versions, delete markers or uploads in progress`,
      EXIT.conflict,
      `${all} removes the objects, and ${all} --versions old versions too`,
    );
  });
}

async function list(call: Invocation): Promise<void> {
  const { words, options, output } = call;
  if (words[0] === undefined || /^s3:\/*$/.test(words[0])) {
    const buckets = [];
    for await (const bucket of call.session().cloud.listBuckets()) buckets.push(bucket);
    output.table(buckets, ['CREATED', 'OBJECTS', 'SIZE', 'BUCKET'], (bucket) => {
      return [bucket.created_at, bucket.object_count, sizeText(bucket.total_size), `s3://${bucket.name}`];
    });
    return;
  }
  const location = remoteOnly(words[0]);
  if (options.has('versions')) return listVersions(call, location);
  const named = await objectNamed(call, location);
  if (named !== undefined) printEntry(call, { name: named.key, object: named });
  let isThere = named !== undefined;
  const { prefix, has } = below(location, call);
  const delimiter = options.has('recursive') || hasWildcards(location, call) ? '' : '/';
  for await (const entry of (await s3Of(call)).list(location.bucket, prefix, delimiter)) {
    if ('prefix' in entry) printEntry(call, { name: entry.prefix });
    else if (!has(entry.object.key)) continue;
    else printEntry(call, { name: entry.object.key, object: entry.object });
    isThere = true;
  }
  if (!isThere) await refuseNothing(call, location);
}

/** An empty bucket is an empty list; a folder or pattern without an object is an error, as for files. */
async function refuseNothing(call: Invocation, location: RemoteLocation): Promise<void> {
  if (location.key !== '') throw await nothingAt(call, location, true);
}

/** Lines of a fixed width, so that a list of any length can be printed as it arrives. */
function printEntry(
  { options, output }: Invocation,
  { name, object }: { name: string; object?: ListedObject },
) {
  if (output.isJson) {
    output.json(object ?? { prefix: name });
    return;
  }
  if (object === undefined) {
    output.line(`${''.padEnd(19)}  ${'folder'.padStart(SIZE_WIDTH)}  ${name}`);
    return;
  }
  const etag = options.has('long') ? `  ${object.etag.padEnd(36)}` : '';
  const size = sizeText(object.size).padStart(SIZE_WIDTH);
  output.line(`${timeText(object.modified)}  ${size}${etag}  ${name}`);
}

function timeText(iso: string): string {
  return iso.slice(0, 19).replace('T', ' ');
}

/** Includes versions of the object with that name. */
async function listVersions(call: Invocation, location: RemoteLocation): Promise<void> {
  const { bucket, key } = location;
  let isThere = false;
  if (key !== folderKey(key) && !hasWildcards(location, call)) {
    for await (const version of (await s3Of(call)).versions(bucket, key)) {
      if (version.key !== key) break;
      printVersion(call, version);
      isThere = true;
    }
  }
  for await (const version of versionsAt(call, location)) {
    printVersion(call, version);
    isThere = true;
  }
  if (!isThere) await refuseNothing(call, location);
}

function printVersion({ output }: Invocation, each: ListedVersion): void {
  if (output.isJson) {
    output.json(each);
    return;
  }
  const { isMarker, isLatest, modified, version, key, size } = each;
  const what = (isMarker ? 'deleted' : sizeText(size)).padStart(SIZE_WIDTH);
  output.line(`${timeText(modified)}  ${what}  ${isLatest ? '*' : ' '} ${version}  ${key}`);
}

async function tree(call: Invocation): Promise<void> {
  const location = remoteOnly(call.words[0] ?? '');
  if (call.output.isJson) {
    for await (const object of shownAt(call, location)) call.output.json(object);
    return;
  }
  call.output.line(shown(location));
  const { folder } = below(location, call);
  let before: readonly string[] = [];
  let [count, bytes] = [0, 0];
  for await (const { key, size } of shownAt(call, location)) {
    const parts = (
      key.startsWith(folder) ? key.slice(folder.length) : key.slice(key.lastIndexOf('/') + 1)
    ).split('/');
    const folders = parts.slice(0, -1);
    const same = folders.findIndex((part, at) => part !== before[at]);
    const from = same < 0 ? folders.length : same;
    for (const [at, part] of folders.entries()) {
      if (at >= from) call.output.line(`${'  '.repeat(at + 1)}${part}/`);
    }
    call.output.line(`${'  '.repeat(parts.length)}${parts.at(-1) ?? ''}  ${sizeText(size)}`);
    before = folders;
    [count, bytes] = [count + 1, bytes + size];
  }
  if (count === 0) await refuseNothing(call, location);
  call.output.note(`${counted(count, 'object')}, ${sizeText(bytes)}`);
}

async function stat(call: Invocation): Promise<void> {
  const location = remoteObject(call.words[0] ?? '');
  const headers = await (await s3Of(call)).head(location.bucket, location.key, call.options.text('version'));
  if (headers === undefined) throw new ClientError(`there is no object ${shown(location)}`, EXIT.notFound);
  const told = Object.entries(headers).filter(([name]) => TOLD.test(name));
  call.output.one(Object.fromEntries(told), () => [
    shown(location),
    ...told.map(([name, value]) => `  ${name.replace(/^x-amz-/, '').padEnd(20)} ${value}`),
  ]);
}

const TOLD =
  /^(?:content-(?:length|type|encoding|language|disposition)|etag|last-modified|cache-control|x-amz-(?:meta-|checksum-|version-id|server-side-encryption|storage-class).*)$/;

async function print(
  call: Invocation,
  location: RemoteLocation,
  headers: Readonly<Record<string, string>>,
): Promise<void> {
  const version = call.options.has('version') ? call.options.text('version') : undefined;
  const s3 = await s3Of(call);
  const response = await s3.get({ ...location, version }, headers).catch(async (error) => {
    const isAbsent = error instanceof S3Failure && error.status === 404 && version === undefined;
    throw isAbsent ? await nothingAt(call, location) : error;
  });
  await writeOut(response, location);
}

/** Writes the body to standard output. Throws ClientError if it ends early. */
export async function writeOut(response: IncomingMessage, location: RemoteLocation): Promise<void> {
  const wanted = Number(response.headers['content-length']);
  let written = 0;
  for await (const chunk of response) {
    written += chunk.length;
    if (!process.stdout.write(chunk)) await once(process.stdout, 'drain');
  }
  if (written !== wanted)
    throw new ClientError(`the download of ${shown(location)} ended too early`, EXIT.unavailable);
}
