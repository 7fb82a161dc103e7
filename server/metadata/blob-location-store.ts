/** Where this cloud stores its objects, so that it never looks for them elsewhere. */
import type { Awaitable, Metadata } from './metadata.ts';

const NAME = 'blobs';
/** Removes the location, for a copy of the metadata whose blobs are files again. */
export const FORGET_BLOB_LOCATION = `DELETE FROM settings WHERE name = '${NAME}'`;

export class BlobLocationStore {
  readonly #metadata: Pick<Metadata, 'get' | 'commit'>;

  constructor(metadata: Pick<Metadata, 'get' | 'commit'>) {
    this.#metadata = metadata;
  }

  /** The label of the S3 bucket; undefined: files of the data directory. */
  async find(): Promise<string | undefined> {
    const sql = `SELECT value FROM settings WHERE name = '${NAME}'`;
    return (await (this.#metadata.get<{ value: string }>(sql) as Awaitable<{ value: string } | undefined>))
      ?.value;
  }

  /** Records that blobs are files from now on. */
  async forget(): Promise<void> {
    await this.#metadata.commit([{ sql: FORGET_BLOB_LOCATION, params: [] }]);
  }

  async write(label: string): Promise<void> {
    const sql = `INSERT INTO settings (name, value) VALUES ('${NAME}', ?)
                 ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
    await this.#metadata.commit([{ sql, params: [label] }]);
  }
}
