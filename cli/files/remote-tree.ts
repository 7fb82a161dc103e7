/** The objects below a prefix, in UTF-8 byte order, with the time in their metadata. */
import type { Cloud } from '../../sdk/index.ts';
import type { RemoteLocation } from './locations.ts';
import { readMtime } from './mtime.ts';

export interface RemoteFile {
  /** Relative to the prefix. */
  readonly name: string;
  readonly key: string;
  readonly size: number;
  readonly etag: string;
  /** Earliest time at which it was stored; whole seconds. */
  readonly storedMs: number;
  /** The time of the uploaded file, if known. */
  readonly mtimeMs: number | undefined;
}

/**
 * Uses the list of the REST API, because S3's has no metadata and would need a request for each
 * object. Objects that represent a folder (`a/`) are omitted. Throws CloudError.
 */
export async function* objectsBelow(
  cloud: Cloud,
  { bucket, key: prefix }: RemoteLocation,
): AsyncGenerator<RemoteFile> {
  for await (const object of cloud.listObjects(bucket, prefix === '' ? {} : { prefix })) {
    const { name: key, size, etag, created_at, metadata } = object;
    if (key.endsWith('/') || key.length === prefix.length) continue;
    yield {
      name: key.slice(prefix.length),
      key,
      size,
      etag,
      storedMs: Date.parse(`${created_at.replace(' ', 'T')}Z`),
      mtimeMs: readMtime(metadata?.mtime),
    };
  }
}
