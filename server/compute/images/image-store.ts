/** SQL of images that are not built in. */
import type { Awaitable, Reads, Statement } from '../../metadata/metadata.ts';

export type ImageState = 'importing' | 'ready' | 'failed';

export interface ImageRow {
  readonly image_id: string;
  readonly name: string;
  readonly state: ImageState;
  readonly reason_code: string | null;
  readonly reason_message: string | null;
  /** 0 until the image is ready. */
  readonly size_bytes: number;
  /** 0 until the image is ready. */
  readonly virtual_bytes: number;
  readonly source: string;
  readonly source_format: 'raw' | 'qcow2' | null;
  readonly sha256: string | null;
  readonly created_at: number;
  /** Name among the known images; null: from elsewhere. */
  readonly short_name: string | null;
  /** Received bytes of the source; only counted for known images. */
  readonly fetched_bytes: number;
  /** Size announced by the source; null: unknown. */
  readonly total_bytes: number | null;
}

/** Figures of an image that are known once it is ready. */
export type FoundImage = Pick<ImageRow, 'size_bytes' | 'virtual_bytes' | 'source_format' | 'sha256'>;

const COLUMNS = `image_id, name, state, reason_code, reason_message, size_bytes, virtual_bytes, source,
  source_format, sha256, created_at, short_name, fetched_bytes, total_bytes`;

export class ImageStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Finds an image by its id, or by its short name: the newest that is ready, else the newest. */
  find(image: string): Awaitable<ImageRow | undefined> {
    return this.#reads.get(
      `SELECT ${COLUMNS} FROM images WHERE image_id = ? OR short_name = ?
       ORDER BY CASE WHEN state = 'ready' THEN 0 ELSE 1 END, image_id DESC LIMIT 1`,
      image,
      image,
    );
  }

  /** Oldest first. */
  list(): Awaitable<ImageRow[]> {
    return this.#reads.all(`SELECT ${COLUMNS} FROM images ORDER BY image_id`);
  }

  async isUsed(imageId: string): Promise<boolean> {
    const found = await this.#reads.get(
      `SELECT 1 FROM vms WHERE image_id = ? AND image_id <> 'tiny' LIMIT 1`,
      imageId,
    );
    return found !== undefined;
  }

  insert(row: ImageRow): Statement {
    return {
      sql: `INSERT INTO images (image_id, name, state, size_bytes, virtual_bytes, source, sha256, created_at,
              short_name)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
      params: [
        ...[row.image_id, row.name, row.state, row.size_bytes, row.virtual_bytes],
        ...[row.source, row.sha256, row.created_at, row.short_name],
      ],
    };
  }

  /** Received bytes of its source. */
  progress(imageId: string, fetchedBytes: number, totalBytes: number): Statement {
    return {
      sql: `UPDATE images SET fetched_bytes = ?, total_bytes = ? WHERE image_id = ? AND state = 'importing'`,
      params: [fetchedBytes, totalBytes, imageId],
    };
  }

  /** Removes the failed downloads of a name, whose bytes are gone. */
  deleteFailed(shortName: string): Statement {
    return { sql: `DELETE FROM images WHERE short_name = ? AND state = 'failed'`, params: [shortName] };
  }

  /** Refuses when the image is no longer being imported. */
  finish(imageId: string, found: FoundImage): Statement {
    return {
      sql: `UPDATE images SET state = 'ready', size_bytes = ?, virtual_bytes = ?, source_format = ?, sha256 = ?
            WHERE image_id = ? AND state = 'importing'`,
      params: [found.size_bytes, found.virtual_bytes, found.source_format, found.sha256, imageId],
      expectChanges: 1,
    };
  }

  /** Does nothing to an image that is no longer being imported. */
  fail(imageId: string, code: string, message: string): Statement {
    return {
      sql: `UPDATE images SET state = 'failed', reason_code = ?, reason_message = ?
            WHERE image_id = ? AND state = 'importing'`,
      params: [code, message, imageId],
    };
  }

  /**
   * Part of the commit that stores a machine of this image. Changes no row when the image is gone or not
   * ready.
   */
  claim(imageId: string): Statement {
    return {
      sql: `UPDATE images SET state = state WHERE image_id = ? AND state = 'ready'`,
      params: [imageId],
    };
  }

  /** Changes no row while a machine uses the image. */
  delete(imageId: string): Statement {
    return {
      sql: `DELETE FROM images WHERE image_id = ?
              AND NOT EXISTS (SELECT 1 FROM vms WHERE vms.image_id = images.image_id AND image_id <> 'tiny')`,
      params: [imageId],
    };
  }
}
