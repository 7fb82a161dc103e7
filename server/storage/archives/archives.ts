/** A folder of a bucket, or a selection from it, as a zip that is generated while it is sent. */
import { safePath } from '../../calls/account-export.ts';
import type { Call } from '../../calls/principal.ts';
import { endOfTick, type InTurn, SCANNED_AT_ONCE, ScanTurns } from '../../platform/concurrency.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { customerKeyRequired } from '../keys/customer-key.ts';
import type { BrowsedRow, BrowseSql, From } from '../listing/browse-sql.ts';
import { startOf } from '../listing/folder-walk.ts';
import type { Listing } from '../listing/listing.ts';
import type { Downloads } from '../objects/downloads.ts';
import { commonFolder, type Selection } from './selections.ts';
import { maxDirectoryBytes, ZipWriter } from './zip-writer.ts';

export interface ArchivesDeps {
  readonly store: BrowseSql;
  readonly listing: Pick<Listing, 'bucketFor'>;
  readonly downloads: Downloads;
  /** Maximum files in one zip: its central directory is kept in memory until the end. */
  readonly maxFiles: number;
  /** Limits concurrent walks through folders; default: only those of archives. */
  readonly turns?: Pick<ScanTurns, 'walk'>;
}

interface Folder {
  readonly bucket: string;
  /** Empty, or ends with "/". */
  readonly prefix: string;
}

/** The content of a zip. */
interface Contents {
  readonly bucketId: number;
  /** The name of the bucket. */
  readonly name: string;
  /** The folder that paths in the zip are relative to. */
  readonly root: string;
  /** Folders and objects; empty is the whole bucket. */
  readonly names: readonly string[];
}

interface Measured {
  readonly files: number;
  readonly nameBytes: number;
}

const isFolder = (name: string) => name === '' || name.endsWith('/');

type Reader = Pick<Call, 'principal' | 'data'> & {
  /** Aborted once nobody waits for the archive. */
  readonly signal?: AbortSignal;
};
type Sink = (chunk: Uint8Array) => Promise<void>;

interface Archive {
  readonly fileName: string;
  /** Rejects if the caller disconnects or a file is damaged: the zip is then incomplete. */
  readonly send: (sink: Sink, signal: AbortSignal) => Promise<void>;
}

interface Added {
  readonly reader: Reader;
  readonly objectId: string;
  /** Path in the zip. */
  readonly path: string;
  readonly signal: AbortSignal;
}

const PAGE = 1000;
/** Bytes of central directories that an account's zips may use at a time, per file of the largest zip. */
const SHARE_PER_FILE = 300;

export class Archives {
  readonly #deps: ArchivesDeps;
  readonly #shareBytes: number;
  readonly #memory: ZipMemory;
  readonly #turns: Pick<ScanTurns, 'walk'>;

  constructor(deps: ArchivesDeps) {
    this.#deps = deps;
    this.#shareBytes = Math.max(2 ** 20, deps.maxFiles * SHARE_PER_FILE);
    this.#memory = new ZipMemory(this.#shareBytes);
    this.#turns = deps.turns ?? new ScanTurns();
  }

  /**
   * A folder. Throws `bucket_not_found`, `scope_required`, `customer_key_required` for a folder
   * with objects encrypted with a client's key, and `invalid_request` for a folder that is too
   * large; `send` may throw `overloaded` before it has sent anything.
   */
  async open(reader: Reader, { bucket: name, prefix }: Folder): Promise<Archive> {
    const bucket = await this.#deps.listing.bucketFor(reader.principal, name, prefix);
    return this.#archive(reader, { bucketId: bucket.id, name, root: prefix, names: [prefix] });
  }

  /**
   * A selection, relative to the folder that contains all of it. Throws the errors of `open`, and
   * `selection_not_found`.
   */
  async openChosen(reader: Reader, name: string, selection: Selection): Promise<Archive> {
    const root = commonFolder(selection.names);
    const bucket = await this.#deps.listing.bucketFor(reader.principal, name, root);
    if (bucket.id !== selection.bucketId)
      throw new AppError('selection_not_found', 'The selection belongs to another bucket');
    return this.#archive(reader, { bucketId: bucket.id, name, root, names: selection.names });
  }

  async #archive(reader: Reader, what: Contents): Promise<Archive> {
    const { name: bucketName, root: prefix } = what;
    const root = safePath(prefix.split('/').at(-2) ?? bucketName);
    // Visitors of a shared link do not wait with searches of its account, or hold those up.
    const walk = { accountId: reader.principal.accountId, kind: 'zip' };
    const measure = (inTurn: InTurn) => this.#measureAll(what, inTurn);
    const { files, nameBytes } = await this.#turns.walk(walk, reader.signal, measure);
    const longer = Buffer.byteLength(`${root}/`) - Buffer.byteLength(prefix);
    const directoryBytes = maxDirectoryBytes(files, nameBytes + files * longer);
    if (directoryBytes > this.#shareBytes) throw tooLarge('The names in the folder are too long for a zip');
    const send = async (sink: Sink, signal: AbortSignal) => {
      const held = this.#memory.hold(reader.principal.accountId);
      try {
        held.atLeast(directoryBytes);
        const zip = new ZipWriter(sink);
        for await (const { name, object_id, size_bytes, isFolderToo } of this.#filesOf(what)) {
          // Some programs create empty objects as folders.
          if (name.endsWith('/') && size_bytes === 0) continue;
          const inFolder = name.slice(prefix.length);
          const path = safePath(inFolder);
          // Sanitizing must not make two names equal, and no file on a disk is a folder too.
          const own = path === inFolder && !isFolderToo ? path : `${path}~${object_id.slice(-6)}`;
          await this.#add(zip, { reader, objectId: object_id, path: `${root}/${own}`, signal });
          held.atLeast(zip.directoryBytes);
          // Small files come from memory: a fast reader would take all of them in one event-loop turn.
          await endOfTick();
        }
        await zip.end();
      } finally {
        held.release();
      }
    };
    return { fileName: `${root}.zip`, send };
  }

  async #measureAll({ bucketId, names }: Contents, inTurn: InTurn): Promise<Measured> {
    const { maxFiles } = this.#deps;
    let [files, nameBytes] = [0, 0];
    for (const name of names)
      for await (const part of this.#measured(bucketId, name, inTurn)) {
        files += part.files;
        nameBytes += part.nameBytes;
        if (files > maxFiles) throw tooLarge(`The folder has more than ${maxFiles} files`);
      }
    return { files, nameBytes };
  }

  /** A folder or an object, part by part. */
  async *#measured(bucketId: number, of: string, inTurn: InTurn): AsyncGenerator<Measured> {
    const { store } = this.#deps;
    const end = isFolder(of) ? startOf(of, 'desc').name : of;
    const page = { end, scan: SCANNED_AT_ONCE };
    for (let from: From | null = startOf(of, 'asc'); from !== null; ) {
      const start: From = from;
      const [part, locked] = await inTurn(async () => [
        await store.measure(bucketId, start, page),
        await store.customerEncrypted(bucketId, start, page),
      ]);
      if (locked !== undefined) throw customerKeyRequired(locked.name);
      yield part;
      const isLast = part.files < SCANNED_AT_ONCE || part.last === null;
      from = isLast ? null : { name: part.last ?? '', after: true };
    }
  }

  async *#filesOf(what: Contents): AsyncGenerator<BrowsedRow & { readonly isFolderToo: boolean }> {
    let row: BrowsedRow | undefined;
    for (const name of what.names)
      for await (const next of this.#files(what.bucketId, name)) {
        if (row !== undefined) yield { ...row, isFolderToo: await this.#isFolderToo(what, row, next) };
        row = next;
      }
    if (row !== undefined) yield { ...row, isFolderToo: false };
  }

  /** Whether other objects lie "in" this one: `a/b` beside `a`. `next`: the next one of the zip. */
  async #isFolderToo({ bucketId }: Contents, { name }: BrowsedRow, next: BrowsedRow): Promise<boolean> {
    // Names that begin with this one follow it at once.
    if (!next.name.startsWith(name)) return false;
    const from = { name: `${name}/`, after: false };
    const [first] = await this.#deps.store.entries({ bucketId, isDeleted: false, order: 'asc' }, from, 1);
    return first?.name.startsWith(from.name) === true;
  }

  /** The objects of a folder, or the single object with that name. */
  async *#files(bucketId: number, of: string): AsyncGenerator<BrowsedRow> {
    const view = { bucketId, isDeleted: false, order: 'asc' } as const;
    const limit = isFolder(of) ? PAGE : 1;
    let from = startOf(of, 'asc');
    for (;;) {
      const rows = await this.#deps.store.entries(view, from, limit);
      for (const row of rows) {
        if (isFolder(of) ? !row.name.startsWith(of) : row.name !== of) return;
        yield row;
        from = { name: row.name, after: true };
      }
      if (rows.length < limit || !isFolder(of)) return;
    }
  }

  /** Skips objects that were deleted in the meantime. */
  async #add(zip: ZipWriter, { reader, objectId, path, signal }: Added): Promise<void> {
    const { downloads } = this.#deps;
    const content = await downloads.find(reader.principal, objectId).catch((error: unknown) => {
      if (isAppError(error, 'object_not_found')) return undefined;
      throw error;
    });
    if (content === undefined) return;
    downloads.touch(content, reader);
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

function tooLarge(detail: string): AppError {
  return new AppError('invalid_request', detail, { hint: 'Download its subfolders one by one' });
}

/** Limits the memory for central directories of zips being sent, per account and in total. */
const SHARES = 4;

export interface Held {
  /** Raises the reservation to `bytes`, if it is smaller. Throws `overloaded`. */
  atLeast(bytes: number): void;
  release(): void;
}

class ZipMemory {
  readonly #shareBytes: number;
  readonly #ofAccounts = new Map<number, number>();
  #total = 0;

  constructor(shareBytes: number) {
    this.#shareBytes = shareBytes;
  }

  hold(accountId: number): Held {
    let held = 0;
    return {
      atLeast: (bytes) => {
        if (bytes <= held) return;
        this.#add(accountId, bytes - held);
        held = bytes;
      },
      release: () => {
        this.#add(accountId, -held);
        held = 0;
      },
    };
  }

  #add(accountId: number, bytes: number): void {
    const own = (this.#ofAccounts.get(accountId) ?? 0) + bytes;
    const total = this.#total + bytes;
    if (bytes > 0 && (own > this.#shareBytes || total > this.#shareBytes * SHARES)) {
      throw new AppError('overloaded', 'Too many large folders are being downloaded at once', {
        hint: 'Try again when another download has ended',
        retryAfterSeconds: 10,
      });
    }
    this.#total = total;
    if (own === 0) this.#ofAccounts.delete(accountId);
    else this.#ofAccounts.set(accountId, own);
  }
}
