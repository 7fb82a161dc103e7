/** The objects below a prefix, in UTF-8 byte order, with the time that their metadata keep. */
import type { Cloud } from '../../sdk/index.ts';
import type { RemoteLocation } from './locations.ts';
import { readMtime } from './mtime.ts';

export interface RemoteFile {
  /** Relative to the prefix. */
  readonly name: string;
  readonly key: string;
  readonly size: number;
  readonly etag: string;
  /** When it was stored, at the earliest; in whole seconds. */
  readonly storedMs: number;
  /** The time of the uploaded file, if known. */
  readonly mtimeMs: number | undefined;
}

/**
 * Reads the list of the REST API, because that of S3 has no metadata: a request for each object would be the
 * only other way. Objects that stand for a folder (`a/`) are left out. Throws CloudError.
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
      mtimeMs: readMtime(metadata?.['mtime']),
    };
  }
}
