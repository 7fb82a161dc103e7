/** SQL that finds content by name, for S3 clients. */
import type { Awaitable, Reads } from '../../metadata/metadata.ts';
import {
  CONTENT_COLUMNS,
  CONTENT_JOINS,
  type ContentRow,
  type MarkerRow,
  NULL_VERSION,
} from './object-sql.ts';

export class NamedSql {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** The live content of a name. */
  namedContent(bucketId: number, name: string): Awaitable<ContentRow | undefined> {
    return this.#reads.get(
      `SELECT ${CONTENT_COLUMNS} FROM objects o JOIN versions v ON v.id = o.current ${CONTENT_JOINS}
       WHERE o.bucket_id = ? AND o.name = ? AND v.blob IS NOT NULL`,
      bucketId,
      name,
    );
  }

  /** The content of one version of a name; `null` is the null version. undefined for a marker too. */
  namedVersionContent(bucketId: number, name: string, versionId: string): Awaitable<ContentRow | undefined> {
    const isNull = versionId === NULL_VERSION;
    const select = `SELECT ${CONTENT_COLUMNS} FROM objects o JOIN versions v ON v.object = o.id ${CONTENT_JOINS}
       WHERE o.bucket_id = ? AND o.name = ? AND v.blob IS NOT NULL`;
    return isNull
      ? this.#reads.get(`${select} AND v.is_null = 1`, bucketId, name)
      : this.#reads.get(`${select} AND v.version_id = ?`, bucketId, name, versionId);
  }

  /** One delete marker of a name, found like namedVersionContent(). */
  namedMarker(bucketId: number, name: string, versionId: string): Awaitable<MarkerRow | undefined> {
    const select = `SELECT v.version_id, v.is_null, v.created_at FROM objects o JOIN versions v ON v.object = o.id
       WHERE o.bucket_id = ? AND o.name = ? AND v.blob IS NULL`;
    return versionId === NULL_VERSION
      ? this.#reads.get(`${select} AND v.is_null = 1`, bucketId, name)
      : this.#reads.get(`${select} AND v.version_id = ?`, bucketId, name, versionId);
  }

  /** The delete marker of a name; undefined: there is no such object, or it is live. */
  markerOn(bucketId: number, name: string): Awaitable<MarkerRow | undefined> {
    return this.#reads.get(
      `SELECT v.version_id, v.is_null, v.created_at FROM objects o JOIN versions v ON v.object = o.id
       WHERE o.bucket_id = ? AND o.name = ? AND o.current IS NULL ORDER BY v.id DESC LIMIT 1`,
      bucketId,
      name,
    );
  }
}
