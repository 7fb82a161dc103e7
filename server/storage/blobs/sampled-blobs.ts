/** Reads some blobs completely and compares them with their rows, for a restore drill. */
import { createHash } from 'node:crypto';
import { AGELESS } from '../../metadata/ages.ts';
import type { Reads } from '../../metadata/metadata.ts';
import type { Sealer } from '../../platform/master-key.ts';
import { type DataKeys, openDataKeys } from '../keys/encryption.ts';
import { BlobSql, type SampledBlobRow } from './blob-sql.ts';
import type { BlobStore } from './blobs.ts';

export interface SampledBlobsDeps {
  readonly metadata: Reads;
  readonly blobs: Pick<BlobStore, 'read'>;
  readonly keys: Sealer;
}

/** Resolves with the number of bytes read. Rejects with the first difference. */
export async function readSampledBlobs(names: readonly string[], deps: SampledBlobsDeps): Promise<number> {
  const { metadata, blobs, keys } = deps;
  const [store, dataKeys] = [new BlobSql(metadata), openDataKeys(metadata, keys, AGELESS)];
  let bytes = 0;
  for (const name of names) {
    const row = await store.sampled(name);
    if (row === undefined) throw new Error(`${name} is missing from the metadata`);
    await readBlob(row, { blobs, dataKeys }).catch((cause: Error) => {
      throw new Error(`${name}: ${cause.message}`, { cause });
    });
    bytes += row.size_bytes;
  }
  return bytes;
}

/** The MD5 of bytes under a named or a customer's key is not stored: their etag is random. */
const MD5 = /^[0-9a-f]{32}$/;

async function readBlob(
  row: SampledBlobRow,
  { blobs, dataKeys }: Pick<SampledBlobsDeps, 'blobs'> & { readonly dataKeys: Pick<DataKeys, 'open'> },
): Promise<void> {
  const md5 = createHash('md5');
  let bytes = 0;
  const sink = (chunk: Uint8Array) => {
    md5.update(chunk);
    bytes += chunk.length;
    return undefined;
  };
  const dataKey = await dataKeys.open(row);
  const ref = { name: row.name, sizeBytes: row.size_bytes, dataKey };
  await blobs.read(ref, { start: 0, end: row.size_bytes }, { sink });
  if (bytes !== row.size_bytes) throw new Error(`${bytes} bytes, but ${row.size_bytes} in the metadata`);
  const isHidden = row.named_key !== null || row.has_customer_key === 1;
  if (isHidden || row.etag === null || !MD5.test(row.etag)) return;
  if (md5.digest('hex') !== row.etag)
    throw new Error('the MD5 of the stored bytes differs from the one in the metadata');
}
