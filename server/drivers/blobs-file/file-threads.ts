/** The worker threads that write and read the files. */
import type { Alarms } from '../../platform/alarms.ts';
import { programFile } from '../../platform/program-files.ts';
import { type BlobThread, WorkerPool } from '../blob-frames/worker-pool.ts';
import type { BlobReply, BlobRequest, BlobThreadSetup } from './blob-messages.ts';

export type FileThread = BlobThread<BlobRequest, BlobReply>;
export type FileThreads = WorkerPool<BlobRequest, BlobReply>;

export interface FileThreadsDeps {
  /** Directory of the blobs. */
  readonly directory: string;
  /** At most. */
  readonly threads: number;
  /** Maximum direct writes of all threads together. */
  readonly directWrites: number;
  readonly alarms: Alarms;
}

/** Starts threads on demand. */
export function fileThreads({ directory, threads, directWrites, alarms }: FileThreadsDeps): FileThreads {
  const setup: BlobThreadSetup = { directory, directWrites: Math.floor(directWrites / threads) };
  return new WorkerPool({ script: programFile('drivers/blobs-file/blob-worker'), setup, threads, alarms });
}
