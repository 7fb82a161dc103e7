/**
 * Where a list continues when the last entry of the previous page is gone: clients list a page, delete it,
 * and continue. Ids begin with their time, so their text alone gives the order. Ids of one millisecond have
 * no order: such entries are repeated rather than skipped.
 */
import type { Awaitable, Reads } from '../../metadata/metadata.ts';
import { NULL_VERSION } from '../objects/object-sql.ts';

/** Greater than all row ids. */
export const ALL_ROWS = Number.MAX_SAFE_INTEGER;

/** `ver-` or `upl-`, and 10 characters of time. */
const TIMED_LENGTH = 14;

type Found = { readonly id: number } | undefined;

export class PageEndSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /**
   * All versions of an object that follow this one in a list, newest first, have lower row ids than
   * the result; undefined: none follow. If a null version is gone, its time is unknown, and all
   * follow.
   */
  async beforeVersion(object: number, versionId: string): Promise<number | undefined> {
    const isNull = versionId === NULL_VERSION;
    const there = isNull ? await this.#nullVersion(object) : await this.#version(object, versionId);
    if (there !== undefined || isNull) return there?.id ?? ALL_ROWS;
    // `~` comes after all characters of ids.
    const older: Found = await this.#reads.get(
      'SELECT id FROM versions WHERE object = ? AND version_id < ? ORDER BY id DESC LIMIT 1',
      object,
      `${versionId.slice(0, TIMED_LENGTH)}~`,
    );
    return older === undefined ? undefined : older.id + 1;
  }

  #version(object: number, versionId: string): Awaitable<Found> {
    return this.#reads.get('SELECT id FROM versions WHERE object = ? AND version_id = ?', object, versionId);
  }

  #nullVersion(object: number): Awaitable<Found> {
    return this.#reads.get(
      'SELECT id FROM versions WHERE object = ? AND is_null = 1 ORDER BY id DESC LIMIT 1',
      object,
    );
  }

  /** All open uploads of a name that follow this one, oldest first, have higher row ids than the result. */
  async afterUpload(bucketId: number, name: string, uploadId: string): Promise<number> {
    const there: Found = await this.#reads.get(
      'SELECT id FROM uploads WHERE upload_id = ? AND bucket_id = ? AND name = ?',
      uploadId,
      bucketId,
      name,
    );
    if (there !== undefined) return there.id;
    const younger: Found = await this.#reads.get(
      `SELECT id FROM uploads WHERE bucket_id = ? AND state = 0 AND name = ? AND upload_id >= ?
       ORDER BY id LIMIT 1`,
      bucketId,
      name,
      uploadId.slice(0, TIMED_LENGTH),
    );
    return younger === undefined ? ALL_ROWS : younger.id - 1;
  }
}
