/** The components of a point, as files of the data directory, in this order. */
import type { BlobStore } from '../../storage/blobs/blobs.ts';
import { RecoveryStore } from '../store.ts';
import type { DataFiles, Snapshot, Source, SourceFile } from './sources.ts';

/** The component with the keys that seal the metadata. */
export const KEYS = 'keys';
export const KEY_FILE = 'master.key';
const OWNER_ONLY = 0o600;
const PAGE = 1000;
/** Bytes from another host may be interrupted. */
const BLOB_TRIES = 3;

export interface CloudData {
  readonly files: DataFiles;
  readonly blobs: Pick<BlobStore, 'raw'>;
  /** Components from other domains. */
  readonly more: readonly Source[];
}

/** Keys come first, because nothing else can be used without them. */
export function cloudSources({ files, blobs, more }: CloudData): Source[] {
  return [keys(files), metadata(), objects(blobs), images(files), ...more];
}

function keys(files: DataFiles): Source {
  return {
    name: KEYS,
    consistency: 'the keys that encrypt the metadata',
    async *files() {
      yield plainFile(files, KEY_FILE, 'in_place');
    },
  };
}

function metadata(): Source {
  return {
    name: 'metadata',
    consistency: 'one consistent snapshot',
    async *files(snapshot) {
      const open = async () => snapshot.bytes();
      yield { path: 'metadata.db', mode: OWNER_ONLY, open, changes: 'in_place', isPacked: false };
    },
  };
}

/** Every blob in the snapshot: it was stored before and is kept while a hold exists. */
function objects(blobs: Pick<BlobStore, 'raw'>): Source {
  return {
    name: 'objects',
    consistency: 'as of the metadata snapshot',
    order: 'name',
    async *files({ reads }: Snapshot) {
      const store = new RecoveryStore(reads);
      for (let after = ''; ; ) {
        const names = await store.blobs(after, PAGE);
        for (const name of names) {
          yield {
            ...blobs.raw(name),
            mode: OWNER_ONLY,
            changes: 'never',
            isPacked: false,
            tries: BLOB_TRIES,
          };
        }
        after = names.at(-1) ?? after;
        if (names.length < PAGE) return;
      }
    },
  };
}

/** Images that disks are created from. An image never changes once it is stored. */
function images(files: DataFiles): Source {
  return {
    name: 'images',
    consistency: 'immutable files',
    order: 'name',
    async *files() {
      const names = (await files.list(files.images)).filter((name) => !name.startsWith('.'));
      for (const name of names.sort()) yield plainFile(files, `${files.images}/${name}`, 'never');
    },
  };
}

function plainFile(files: DataFiles, path: string, changes: SourceFile['changes']): SourceFile {
  return { path, mode: OWNER_ONLY, absolutePath: files.pathOf(path), changes, isPacked: false };
}
