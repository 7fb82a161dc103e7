/** Counts the objects and bytes of a folder in parts: a large folder takes several calls. */
import type { Principal } from '../../calls/principal.ts';
import { type InTurn, SCANNED_AT_ONCE, ScanTurns } from '../../platform/concurrency.ts';
import type { FolderSize } from '../schema.ts';
import type { BrowseSql, From } from './browse-sql.ts';
import { formatSize } from './entries.ts';
import { startOf } from './folder-walk.ts';
import { decodeCursor, encodeCursor, type Listing } from './listing.ts';

export interface FolderSizesDeps {
  readonly store: Pick<BrowseSql, 'sizes'>;
  readonly listing: Pick<Listing, 'bucketFor'>;
  /** Only spans of it count. */
  readonly steady: { readonly now: () => number };
  /** Shared with other walks; default: its own. */
  readonly turns?: ScanTurns;
}

interface Folder {
  readonly prefix: string;
  /** Continues an earlier call. */
  readonly cursor?: string | undefined;
  /** Aborted once nobody waits for the answer. */
  readonly signal?: AbortSignal;
}

interface Counting {
  readonly prefix: string;
  /** Time of `steady` at which it answers. */
  readonly until: number;
  readonly inTurn: InTurn;
}

/**
 * After this time, including the time spent waiting, a call responds with what it has counted: at least one
 * part.
 */
const LONGEST_MS = 1000;

export class FolderSizes {
  readonly #deps: FolderSizesDeps;
  readonly #turns: ScanTurns;

  constructor(deps: FolderSizesDeps) {
    this.#deps = deps;
    this.#turns = deps.turns ?? new ScanTurns();
  }

  /**
   * Live objects whose names begin with `prefix`, from the cursor on. Throws `bucket_not_found`,
   * `scope_required` and `invalid_cursor`, and the signal's reason.
   */
  async of(principal: Principal, bucketName: string, folder: Folder): Promise<FolderSize> {
    const { prefix, cursor, signal } = folder;
    const until = this.#deps.steady.now() + LONGEST_MS;
    const bucket = await this.#deps.listing.bucketFor(principal, bucketName, prefix);
    const start = startOf(prefix, 'asc');
    const from = cursor === undefined ? start : { name: decodeCursor(cursor).name, after: true };
    // A forged cursor may begin before the folder.
    const own = from.name.startsWith(prefix) ? from : start;
    // Searches of the account delay it by one read at a time, not until they end.
    return this.#turns.walk({ accountId: principal.accountId, kind: 'sizes' }, signal, (inTurn) =>
      this.#count(bucket.id, { prefix, until, inTurn }, own),
    );
  }

  async #count(bucketId: number, { prefix, until, inTurn }: Counting, start: From): Promise<FolderSize> {
    const { store, steady } = this.#deps;
    const end = startOf(prefix, 'desc').name;
    let [objects, size] = [0, 0];
    let from = start;
    for (;;) {
      const position = from;
      const part = await inTurn(() => store.sizes(bucketId, position, { end, scan: SCANNED_AT_ONCE }));
      objects += part.files;
      size += part.bytes;
      const isDone = part.files < SCANNED_AT_ONCE || part.last === null;
      if (isDone || steady.now() >= until) {
        const next = isDone ? null : encodeCursor({ name: part.last ?? '', object: 0, version: 0 });
        return { object_count: objects, size, size_formatted: formatSize(size), next_cursor: next };
      }
      from = { name: part.last ?? '', after: true };
    }
  }
}
