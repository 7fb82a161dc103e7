/** A folder of a bucket as one zip, made while it is sent. */
import type { Principal } from '../calls/principal.ts';
import { AppError, isAppError } from '../platform/errors.ts';
import type { BrowsedRow, BrowseSql } from './browse-sql.ts';
import type { Downloads } from './downloads.ts';
import { startOf } from './folder-walk.ts';
import type { Listing } from './listing.ts';
import { ZipWriter } from './zip-writer.ts';

export interface ArchivesDeps {
  readonly store: BrowseSql;
  readonly listing: Pick<Listing, 'bucketFor'>;
  readonly downloads: Downloads;
  /** Files of one zip: its directory is kept in memory until the end, some 150 bytes each. */
  readonly maxFiles: number;
}

interface Folder {
  readonly bucket: string;
  /** Empty, or ends with "/". */
  readonly prefix: string;
}

type Sink = (chunk: Uint8Array) => Promise<void>;

interface Archive {
  readonly fileName: string;
  /** Rejects when the caller has gone or a file is damaged: then the zip is not whole. */
  readonly send: (sink: Sink, signal: AbortSignal) => Promise<void>;
}

interface Added {
  readonly principal: Principal;
  readonly objectId: string;
  /** In the zip. */
  readonly path: string;
  readonly signal: AbortSignal;
}

const PAGE = 1000;

export class Archives {
  readonly #deps: ArchivesDeps;

  constructor(deps: ArchivesDeps) {
    this.#deps = deps;
  }

  /** Throws `bucket_not_found`, `scope_required`, and `invalid_request` for a folder that is too large. */
  async open(principal: Principal, { bucket: name, prefix }: Folder): Promise<Archive> {
    const { store, listing, maxFiles } = this.#deps;
    const bucket = await listing.bucketFor(principal, name, prefix);
    const ends = { start: prefix, end: startOf(prefix, 'desc').name };
    const count = await store.countUpTo(bucket.id, ends, maxFiles + 1);
    if (count > maxFiles) {
      throw new AppError('invalid_request', `The folder has more than ${maxFiles} files`, {
        hint: 'Download its folders one by one',
      });
    }
    const root = safePath(prefix.split('/').at(-2) ?? name);
    const send = async (sink: Sink, signal: AbortSignal) => {
      const zip = new ZipWriter(sink);
      for await (const { name, object_id, size_bytes } of this.#files(bucket.id, prefix)) {
        // Some programs make empty objects to stand for folders.
        if (name.endsWith('/') && size_bytes === 0) continue;
        const inFolder = name.slice(prefix.length);
        const path = safePath(inFolder);
        // Two names must not become one.
        const own = path === inFolder ? path : `${path}~${object_id.slice(-6)}`;
        await this.#add(zip, { principal, objectId: object_id, path: `${root}/${own}`, signal });
      }
      await zip.end();
    };
    return { fileName: `${root}.zip`, send };
  }

  async *#files(bucketId: number, prefix: string): AsyncGenerator<BrowsedRow> {
    const view = { bucketId, isDeleted: false, order: 'asc' } as const;
    let from = startOf(prefix, 'asc');
    for (;;) {
      const rows = await this.#deps.store.entries(view, from, PAGE);
      for (const row of rows) {
        if (!row.name.startsWith(prefix)) return;
        yield row;
        from = { name: row.name, after: true };
      }
      if (rows.length < PAGE) return;
    }
  }

  /** Leaves out what was deleted meanwhile. */
  async #add(zip: ZipWriter, { principal, objectId, path, signal }: Added): Promise<void> {
    const { downloads } = this.#deps;
    const content = await downloads.find(principal, objectId).catch((error: unknown) => {
      if (isAppError(error, 'object_not_found')) return undefined;
      throw error;
    });
    if (content === undefined) return;
    downloads.touch(content);
    const { sizeBytes, createdAt: modifiedAt } = content;
    const range = { start: 0, end: sizeBytes };
    await zip.add({
      name: path,
      modifiedAt,
      sizeBytes,
      read: (write) =>
        downloads.read(content, {
          range,
          signal,
          sink: async (chunk) => {
            await write(chunk);
            downloads.countSent(content, chunk.length);
          },
        }),
    });
  }
}

/**
 * A name that leads nowhere but into the folder it is unpacked in, on any system: no "..", no empty part, no
 * "\\" and no ":", which are "/" and a disk to Windows.
 */
function safePath(name: string): string {
  const parts = name.split('/').map((part) => part.replace(/[\\:]/g, '_'));
  return parts.map((part) => (/^\.{0,2}$/.test(part) ? `_${part.replaceAll('.', '_')}` : part)).join('/');
}
