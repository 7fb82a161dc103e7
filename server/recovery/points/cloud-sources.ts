/** The components of a point, as files of the data directory, in this order. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isCode } from '../../platform/files.ts';
import type { BlobStore } from '../../storage/blobs/blobs.ts';
import { RecoveryStore } from '../store.ts';
import type { Snapshot, Source, SourceFile } from './sources.ts';

/** The component with the keys that seal the metadata. */
export const KEYS = 'keys';
export const KEY_FILE = 'master.key';
/** Folder of the images that disks are created from, as in cloud/compute.ts. */
const IMAGES = 'images';
const OWNER_ONLY = 0o600;
const PAGE = 1000;
/** Bytes from another host may be interrupted. */
const BLOB_TRIES = 3;

export interface CloudData {
  /** The data directory. */
  readonly directory: string;
  readonly blobs: Pick<BlobStore, 'raw'>;
  /** Components from other domains. */
  readonly more: readonly Source[];
}

/** Keys come first, because nothing else can be used without them. */
export function cloudSources({ directory, blobs, more }: CloudData): Source[] {
  return [keys(directory), metadata(), objects(blobs), images(directory), ...more];
}

function keys(directory: string): Source {
  return {
    name: KEYS,
    consistency: 'the keys that encrypt the metadata',
    async *files() {
      yield plainFile(directory, KEY_FILE, 'in_place');
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

/** Every blob in the snapshot: stored before it, and not deleted while the recovery point holds it. */
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
function images(directory: string): Source {
  return {
    name: 'images',
    consistency: 'immutable files',
    order: 'name',
    async *files() {
      const names = (await namesIn(join(directory, IMAGES))).filter((name) => !name.startsWith('.'));
      for (const name of names.sort()) yield plainFile(directory, `${IMAGES}/${name}`, 'never');
    },
  };
}

/** Empty if the folder does not exist. */
async function namesIn(folder: string): Promise<readonly string[]> {
  return readdir(folder).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return [];
    throw error;
  });
}

function plainFile(directory: string, path: string, changes: SourceFile['changes']): SourceFile {
  return { path, mode: OWNER_ONLY, absolutePath: join(directory, path), changes, isPacked: false };
}
