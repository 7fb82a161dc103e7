/** SQL for browsing a bucket: by name, size or time, live or deleted objects. */
import type { Awaitable, Reads } from '../../metadata/metadata.ts';
import { ENTRY_COLUMNS, type EntryRow } from '../objects/object-sql.ts';

export type Order = 'asc' | 'desc';
export type SortKey = 'size' | 'created_at';

/** Objects to list, in order of name. */
export interface View {
  readonly bucketId: number;
  readonly isDeleted: boolean;
  readonly order: Order;
}

/** A position among names. */
export interface From {
  readonly name: string;
  readonly after: boolean;
}

export interface BrowsedRow extends EntryRow {
  readonly changed_at: number;
}

/** The columns of an object needed for sorting. */
export interface KeyRow {
  readonly id: number;
  readonly name: string;
  readonly key: number;
}

interface Measured {
  readonly files: number;
  readonly nameBytes: number;
  readonly last: string | null;
}

interface Sizes {
  readonly files: number;
  readonly bytes: number;
  readonly last: string | null;
}

const BEYOND = { asc: '>', desc: '<' } as const;
const DIRECTION = { asc: 'ASC', desc: 'DESC' } as const;
const KEY_COLUMN = { size: 'size_bytes', created_at: 'changed_at' } as const;
const LIVE = 'o.bucket_id = ? AND o.current IS NOT NULL';
const DELETED = 'o.bucket_id = ? AND o.current IS NULL AND o.changed_at IS NOT NULL';
/** The version of a deleted object that can be restored. */
const LAST_BYTES = '(SELECT max(d.id) FROM versions d WHERE d.object = o.id AND d.blob IS NOT NULL)';

const member = ({ isDeleted }: View) => (isDeleted ? DELETED : LIVE);
const position = ({ order }: View, { after }: From) => `o.name ${BEYOND[order]}${after ? '' : '='} ?`;

export class BrowseSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** By name (UTF-8 byte order); deleted objects only if a version with bytes remains. */
  entries(view: View, from: From, limit: number): Awaitable<BrowsedRow[]> {
    return this.#reads.all(
      `SELECT ${ENTRY_COLUMNS}, ${view.isDeleted ? 0 : 1} AS is_latest, o.changed_at
       FROM objects o JOIN versions v ON v.id = ${view.isDeleted ? LAST_BYTES : 'o.current'}
       WHERE ${member(view)} AND ${position(view, from)} ORDER BY o.name ${DIRECTION[view.order]} LIMIT ?`,
      view.bucketId,
      from.name,
      limit,
    );
  }

  /** Objects whose names contain `words` (lower case), among the next `scan` names. */
  found(
    view: View,
    from: From,
    { words, scan, limit }: { words: string; scan: number; limit: number },
  ): Awaitable<BrowsedRow[]> {
    return this.#reads.all(
      `SELECT ${ENTRY_COLUMNS}, ${view.isDeleted ? 0 : 1} AS is_latest, o.changed_at FROM (
         SELECT o.id, o.name FROM objects o
         WHERE ${member(view)} AND ${position(view, from)} ORDER BY o.name ${DIRECTION[view.order]} LIMIT ?
       ) f JOIN objects o ON o.id = f.id JOIN versions v ON v.id = ${view.isDeleted ? LAST_BYTES : 'o.current'}
       WHERE instr(lower(f.name), ?) > 0 ORDER BY f.name ${DIRECTION[view.order]} LIMIT ?`,
      view.bucketId,
      from.name,
      scan,
      words,
      limit,
    );
  }

  /** The last of the next `scan` names; undefined: fewer names remain. */
  lastName(view: View, from: From, scan: number): Awaitable<{ name: string } | undefined> {
    return this.#reads.get(
      `SELECT o.name FROM objects o WHERE ${member(view)} AND ${position(view, from)}
       ORDER BY o.name ${DIRECTION[view.order]} LIMIT 1 OFFSET ?`,
      view.bucketId,
      from.name,
      scan - 1,
    );
  }

  /** Number and length of the next `scan` live names up to `end`. */
  async measure(
    bucketId: number,
    from: From,
    { end, scan }: { end: string; scan: number },
  ): Promise<Measured> {
    const measured = await this.#reads.get<Measured>(
      `SELECT count(*) AS files, coalesce(sum(octet_length(name)), 0) AS "nameBytes", max(name) AS last FROM (
         SELECT o.name FROM objects o WHERE ${LIVE} AND o.name ${from.after ? '>' : '>='} ? AND o.name <= ?
         ORDER BY o.name LIMIT ?) AS scanned`,
      bucketId,
      from.name,
      end,
      scan,
    );
    return measured ?? { files: 0, nameBytes: 0, last: null };
  }

  /** Count and bytes of the next `scan` live objects up to `end`. */
  async sizes(bucketId: number, from: From, { end, scan }: { end: string; scan: number }): Promise<Sizes> {
    const sizes = await this.#reads.get<Sizes>(
      `SELECT count(*) AS files, CAST(coalesce(sum(size_bytes), 0) AS BIGINT) AS bytes, max(name) AS last FROM (
         SELECT o.name, o.size_bytes FROM objects o WHERE ${LIVE} AND o.name ${from.after ? '>' : '>='} ?
         AND o.name <= ? ORDER BY o.name LIMIT ?) AS scanned`,
      bucketId,
      from.name,
      end,
      scan,
    );
    return sizes ?? { files: 0, bytes: 0, last: null };
  }

  /**
   * Searches the next `scan` live names up to `end` for the first one that is encrypted with a client's key.
   */
  customerEncrypted(
    bucketId: number,
    from: From,
    { end, scan }: { end: string; scan: number },
  ): Awaitable<{ name: string } | undefined> {
    return this.#reads.get(
      `SELECT scanned.name FROM (
         SELECT o.name, o.current FROM objects o
         WHERE EXISTS (SELECT 1 FROM blobs WHERE customer IS NOT NULL)
           AND ${LIVE} AND o.name ${from.after ? '>' : '>='} ? AND o.name <= ? ORDER BY o.name LIMIT ?
       ) AS scanned JOIN versions v ON v.id = scanned.current JOIN blobs bl ON bl.id = v.blob
       WHERE bl.customer IS NOT NULL LIMIT 1`,
      bucketId,
      from.name,
      end,
      scan,
    );
  }

  /** The first of the next `scan` live names with a "/" at or after a character offset. */
  nameInFolder(
    bucketId: number,
    from: From,
    { offset, scan }: { offset: number; scan: number },
  ): Awaitable<{ name: string } | undefined> {
    return this.#reads.get(
      `SELECT name FROM (
         SELECT o.name FROM objects o WHERE ${LIVE} AND o.name ${from.after ? '>' : '>='} ?
         ORDER BY o.name LIMIT ?
       ) AS scanned WHERE instr(substr(name, ?), '/') > 0 LIMIT 1`,
      bucketId,
      from.name,
      scan,
      offset,
    );
  }

  /** Live objects by name, with their sort key. */
  keysByName(bucketId: number, from: From, page: { by: SortKey; limit: number }): Awaitable<KeyRow[]> {
    return this.#reads.all(
      `SELECT o.id, o.name, o.${KEY_COLUMN[page.by]} AS key FROM objects o
       WHERE ${LIVE} AND o.name ${from.after ? '>' : '>='} ? ORDER BY o.name LIMIT ?`,
      bucketId,
      from.name,
      page.limit,
    );
  }

  /**
   * Live objects whose names contain `words` (lower case), among the next `scan` names, with their sort key.
   */
  foundKeys(
    bucketId: number,
    from: From,
    { by, words, scan }: { by: SortKey; words: string; scan: number },
  ): Awaitable<KeyRow[]> {
    return this.#reads.all(
      `SELECT o.id, o.name, o.${KEY_COLUMN[by]} AS key FROM (
         SELECT o.id, o.name FROM objects o WHERE ${LIVE} AND o.name ${from.after ? '>' : '>='} ?
         ORDER BY o.name LIMIT ?
       ) f JOIN objects o ON o.id = f.id WHERE instr(lower(f.name), ?) > 0`,
      bucketId,
      from.name,
      scan,
      words,
    );
  }

  /** Live objects after a sort key, by size or time. For objects with the same key see equal(). */
  beyond(bucketId: number, key: number, page: KeyPage): Awaitable<KeyRow[]> {
    const column = KEY_COLUMN[page.by];
    const direction = DIRECTION[page.order];
    return this.#reads.all(
      `SELECT o.id, o.name, o.${column} AS key FROM objects o WHERE ${LIVE}
       AND o.${column} ${BEYOND[page.order]} ? ORDER BY o.${column} ${direction}, o.id ${direction} LIMIT ?`,
      bucketId,
      key,
      page.limit,
    );
  }

  /** Live objects with the sort key, after a row id. */
  equal(bucketId: number, { key, id }: Pick<KeyRow, 'key' | 'id'>, page: KeyPage): Awaitable<KeyRow[]> {
    const column = KEY_COLUMN[page.by];
    return this.#reads.all(
      `SELECT o.id, o.name, o.${column} AS key FROM objects o WHERE ${LIVE}
       AND o.${column} = ? AND o.id ${BEYOND[page.order]} ? ORDER BY o.id ${DIRECTION[page.order]} LIMIT ?`,
      bucketId,
      key,
      id,
      page.limit,
    );
  }

  /** The live objects with these ids, in any order. */
  byIds(bucketId: number, ids: readonly number[]): Awaitable<BrowsedRow[]> {
    return this.#reads.all(
      `SELECT ${ENTRY_COLUMNS}, 1 AS is_latest, o.changed_at
       FROM json_each(?) wanted CROSS JOIN objects o JOIN versions v ON v.id = o.current
       WHERE o.id = CAST(wanted.value AS BIGINT) AND o.bucket_id = ?`,
      JSON.stringify(ids),
      bucketId,
    );
  }
}

interface KeyPage {
  readonly by: SortKey;
  readonly order: Order;
  readonly limit: number;
}
