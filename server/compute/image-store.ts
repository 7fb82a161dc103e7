/** SQL of images that are not built in. */
import type { Awaitable, Reads } from '../metadata/metadata.ts';

export interface ImageRow {
  readonly image_id: string;
  readonly name: string;
  readonly file_name: string;
  readonly size_bytes: number;
  readonly virtual_bytes: number;
  readonly source: string;
  readonly created_at: number;
}

const COLUMNS = 'image_id, name, file_name, size_bytes, virtual_bytes, source, created_at';

export class ImageStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  find(imageId: string): Awaitable<ImageRow | undefined> {
    return this.#reads.get(`SELECT ${COLUMNS} FROM images WHERE image_id = ?`, imageId);
  }

  /** Oldest first. */
  list(): Awaitable<ImageRow[]> {
    return this.#reads.all(`SELECT ${COLUMNS} FROM images ORDER BY image_id`);
  }
}
