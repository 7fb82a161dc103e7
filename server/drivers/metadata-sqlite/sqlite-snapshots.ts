/** The metadata as of one moment: a copy beside it, made on its own thread while commits go on. */
import { createReadStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { programFile } from '../../platform/program-files.ts';
import type { Snapshot, Snapshots } from '../../recovery/points/sources.ts';
import { DATABASE_FILE, openReader, SqliteReads } from './connection.ts';

export interface SnapshotInput {
  readonly directory: string;
  readonly to: string;
}

const READ_BYTES = 2 ** 20;

export class SqliteSnapshots implements Snapshots {
  readonly #directory: string;
  readonly #work: string;
  readonly #thread = programFile('drivers/metadata-sqlite/snapshot-thread');
  /** Throws when that many more bytes cannot be stored. */
  readonly #assertSpace: (bytes: number) => void;

  /** `directory`: of the database. `work`: our own folder on the same disk. */
  constructor(deps: {
    readonly directory: string;
    readonly work: string;
    readonly assertSpace: (bytes: number) => void;
  }) {
    this.#directory = deps.directory;
    this.#work = deps.work;
    this.#assertSpace = deps.assertSpace;
  }

  async take(): Promise<Snapshot> {
    await this.sweep();
    await mkdir(this.#work, { mode: 0o700 });
    const file = join(this.#work, DATABASE_FILE);
    try {
      this.#assertSpace(await this.#sizeBytes());
      await this.#copy({ directory: this.#directory, to: file });
    } catch (error) {
      await this.sweep();
      throw error;
    }
    const database = openReader(this.#work);
    return {
      reads: new SqliteReads(database),
      bytes: () => createReadStream(file, { highWaterMark: READ_BYTES }),
      remove: async () => {
        database.close();
        await this.sweep();
      },
    };
  }

  async sweep(): Promise<void> {
    await rm(this.#work, { recursive: true, force: true });
  }

  async #sizeBytes(): Promise<number> {
    const database = openReader(this.#directory);
    try {
      const pages = Number(database.pragma('page_count', { simple: true }));
      return pages * Number(database.pragma('page_size', { simple: true }));
    } finally {
      database.close();
    }
  }

  #copy(workerData: SnapshotInput): Promise<void> {
    const worker = new Worker(this.#thread, { workerData, execArgv: [] });
    return new Promise((resolve, reject) => {
      worker.once('error', reject);
      worker.once('exit', (code) =>
        code === 0 ? resolve() : reject(new Error(`the copy of the metadata ended with ${code}`)),
      );
    });
  }
}
