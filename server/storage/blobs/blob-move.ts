/**
 * Copies the sealed bytes of every object to another store. Existing copies are kept, so that an
 * interrupted move continues. No Cloudlet may use the stores at the same time.
 */
import { eachOf } from '../../platform/concurrency.ts';
import { plural } from '../../platform/plural.ts';
import type { DataKeys } from '../keys/encryption.ts';
import type { BlobSql, NamedBlobRow } from './blob-sql.ts';
import type { BlobStore, RawBlob } from './blobs.ts';

export interface BlobMoveDeps {
  readonly store: BlobSql;
  readonly from: BlobStore;
  readonly to: BlobStore;
  readonly dataKeys: Pick<DataKeys, 'open'>;
  readonly onProgress: (done: MoveFigures, total: MoveFigures) => void;
}

/** Numbers of blobs, and their total size. */
export interface MoveFigures {
  readonly blobs: number;
  readonly bytes: number;
}

export interface MovedBlobs extends MoveFigures {
  /** Blobs that were read back from the new store and verified. */
  readonly compared: number;
  /** Names of blobs that are known to be damaged, and are damaged or missing in the new store too. */
  readonly damaged: readonly string[];
}

const PAGE = 200;
/** Each holds a part of up to 8 MiB. */
const AT_ONCE = 8;
/** One in this many blobs is read back completely. */
const SAMPLE = 20;
const SHOWN = 5;

/**
 * Rejects with a one-line Error if a blob that is not known to be damaged is missing, or if a copy
 * differs from its source; and with the stores' errors. The new store then has some of the blobs.
 */
export async function moveBlobs(deps: BlobMoveDeps): Promise<MovedBlobs> {
  const { store, onProgress } = deps;
  const total = await store.namedTotal();
  const done = { blobs: 0, bytes: 0, compared: 0 };
  const damaged: string[] = [];
  const missing: string[] = [];
  for (let after = 0; ; ) {
    const rows = await store.namedPage(after, PAGE);
    await eachOf(rows, AT_ONCE, async (row) => {
      const isCopied = await copy(deps, row);
      if (!isCopied) (row.damaged_at === null ? missing : damaged).push(row.name);
      else if (row.id % SAMPLE === 0 || row.id === rows[0]?.id) {
        if (await isSound(deps, row)) done.compared++;
        else damaged.push(row.name);
      }
      done.blobs++;
      done.bytes += row.size_bytes;
      onProgress(done, total);
    });
    if (rows.length < PAGE) break;
    after = rows.at(-1)?.id ?? after;
  }
  if (missing.length > 0) {
    const names = missing.slice(0, SHOWN).join(', ') + (missing.length > SHOWN ? ', …' : '');
    throw new Error(
      `the bytes of ${plural(missing.length, 'object')} are missing (${names}): start Cloudlet and run cloudlet scrub, ` +
        'which marks them as damaged; then move again',
    );
  }
  return { ...done, damaged };
}

/** False: the old store does not have it. */
async function copy({ from, to }: BlobMoveDeps, { name }: NamedBlobRow): Promise<boolean> {
  const storedBytes = await from.storedBytes(name);
  if (storedBytes === undefined) return false;
  await to.storeRaw({ name, storedBytes, bytes: bytesOf(from.raw(name)) });
  return true;
}

/** Opened lazily: often the copy already exists. */
async function* bytesOf(raw: RawBlob): AsyncIterable<Uint8Array> {
  const bytes = await raw.open();
  if (bytes !== undefined) yield* bytes;
}

/** Reads the copy. False: it is damaged like its original. */
async function isSound({ from, to, dataKeys }: BlobMoveDeps, row: NamedBlobRow): Promise<boolean> {
  const { name, size_bytes: sizeBytes } = row;
  const ref = { name, sizeBytes, dataKey: await dataKeys.open(row) };
  const verify = (store: BlobStore) =>
    store.read(ref, { start: 0, end: sizeBytes }, { sink: () => undefined }).then(
      () => null,
      (error: Error) => error,
    );
  const fault = await verify(to);
  if (fault === null) return true;
  if ((await verify(from)) !== null) return false;
  throw new Error(`${name} was copied, but cannot be read back: ${fault.message}`);
}
