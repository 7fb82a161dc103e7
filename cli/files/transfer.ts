/** Transfers many files: reports each outcome, and a failed file does not stop the others. */

import { pathOf } from '../../libs/s3-wire/index.ts';
import type { Cloud } from '../../sdk/index.ts';
import type { Invocation } from '../command.ts';
import { ClientError, EXIT, type ExitCode, tell } from '../failures.ts';
import { Requests } from '../s3/requests.ts';
import { S3Client } from '../s3/s3-client.ts';
import { S3Failure } from '../s3/s3-failure.ts';
import { contentTypeOf } from './content-type.ts';
import { type Download, downloadFile, WrittenFiles } from './download.ts';
import type { LeftOut, LocalFile } from './local-tree.ts';
import { type RemoteLocation, shown } from './locations.ts';
import { type Movable, moveWithin } from './move.ts';
import { MTIME_HEADER, mtimeText } from './mtime.ts';
import { forEachOf, Pool } from './pool.ts';
import { Progress } from './progress.ts';
import { uploadFile, uploadStream } from './upload.ts';

export const JOBS = 8;

/** The S3 client of the current session. */
export async function s3Of({ session }: Pick<Invocation, 'session'>): Promise<S3Client> {
  return new S3Client(new Requests(await session().s3Keys()));
}

/** One file to transfer. */
export interface Task {
  /** Name in notes and errors. */
  readonly title: string;
  readonly bytes: number;
  readonly run: () => Promise<void>;
}

export class Transfer {
  readonly s3: S3Client;
  readonly progress: Progress;
  readonly #jobs: number;
  readonly #pool: Pool;
  readonly #noted = new Set<string>();
  readonly #written = new WrittenFiles();
  readonly #cloud: Cloud;
  #failed = 0;
  #worst: ExitCode = EXIT.ok;

  private constructor(call: Invocation, s3: S3Client) {
    this.s3 = s3;
    this.#cloud = call.session().cloud;
    this.#jobs = call.options.count('jobs', JOBS);
    this.#pool = new Pool(this.#jobs);
    this.progress = new Progress(call.output);
  }

  static async begin(call: Invocation): Promise<Transfer> {
    return new Transfer(call, await s3Of(call));
  }

  /** How skipped local files are reported. */
  readonly leftOut: LeftOut = {
    skipped: (name, why) => this.progress.note(`skipped: ${name} (${why})`),
    failed: (name, error) => this.failure(`read: ${name}`, error),
  };

  get failed(): number {
    return this.#failed;
  }

  /** Runs tasks as they arrive, several at a time. */
  async run(tasks: AsyncIterable<Task> | Iterable<Task>): Promise<void> {
    await forEachOf(tasks, this.#jobs, async ({ title, bytes, run }) => {
      this.progress.expect(bytes);
      try {
        await run();
        this.progress.fileDone();
        this.progress.note(title);
      } catch (error) {
        this.failure(title, error);
      }
    });
  }

  /** Reports a failed file; other transfers continue. */
  failure(title: string, error: unknown): void {
    const { lines, exitCode } = tell(error);
    this.#failed += 1;
    this.#worst = exitCode;
    this.progress.warn(`${title}: ${lines.map((line) => line.trim()).join('; ')}`);
  }

  async upload(
    file: LocalFile,
    to: RemoteLocation,
    conditions: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const { path, size, mtimeMs } = file;
    const headers = {
      [MTIME_HEADER]: mtimeText(file.mtimeNs),
      'content-type': contentTypeOf(to.key),
      ...conditions,
    };
    const upload = { path, size, mtimeMs: Math.floor(mtimeMs), to, headers };
    await uploadFile(upload, {
      s3: this.s3,
      pool: this.#pool,
      onMoved: (bytes) => this.progress.moved(bytes),
      onNote: (text) => this.#noteOnce(text),
    });
  }

  /** A stream whose length is not known. */
  async uploadInput(to: RemoteLocation, input: AsyncIterable<Buffer> = process.stdin): Promise<void> {
    const headers = { 'content-type': contentTypeOf(to.key) };
    const onMoved = (bytes: number) => this.progress.moved(bytes);
    const means = { s3: this.s3, pool: this.#pool, onMoved, onNote: () => {} };
    await uploadStream(input, { to, headers }, means);
  }

  #noteOnce(text: string): void {
    if (!this.#noted.has(text)) this.progress.note(text);
    this.#noted.add(text);
  }

  async download(download: Download): Promise<void> {
    const onMoved = (bytes: number) => this.progress.moved(bytes);
    await downloadFile(download, { s3: this.s3, onMoved, written: this.#written });
  }

  /** A copy within the cloud, without downloading the bytes. `etag`: only while the source has it. */
  async copy(
    from: RemoteLocation & { readonly version?: string | undefined },
    to: RemoteLocation,
    etag?: string,
  ): Promise<void> {
    const version = from.version === undefined ? '' : `?versionId=${encodeURIComponent(from.version)}`;
    const headers = {
      'x-amz-copy-source': `${pathOf(from.bucket, from.key)}${version}`,
      ...(etag !== undefined && { 'x-amz-copy-source-if-match': `"${etag}"` }),
    };
    await this.s3.requests.call({ method: 'PUT', ...to, headers });
  }

  /** A move within the cloud: one commit, or a copy and a deletion for another account's object. */
  async move(from: Movable, to: RemoteLocation, etag: string): Promise<void> {
    if (await moveWithin(this.#cloud, from, to)) return;
    await this.copy(from, to, etag);
    await this.deleteMoved(from, etag);
  }

  /** Deletes the source of a move. Throws ClientError if it has other bytes by now, which are not copied. */
  async deleteMoved({ bucket, key }: RemoteLocation, etag: string): Promise<void> {
    try {
      await this.s3.deleteOne(bucket, key, etag);
    } catch (error) {
      if (!(error instanceof S3Failure) || (error.status !== 412 && error.status !== 404)) throw error;
      // The response to an earlier attempt may have been lost.
      if ((await this.s3.head(bucket, key)) === undefined) return;
      const kept = `${shown({ bucket, key })} was replaced while it was being copied, and is kept`;
      throw new ClientError(kept, EXIT.conflict, 'Run the command again to move the new object');
    }
  }

  /** Ends the progress. Exit code 7: some files failed and others did not. */
  end(): ExitCode {
    this.progress.end();
    if (this.#failed === 0) return EXIT.ok;
    return this.progress.files > 0 || this.#failed > 1 ? EXIT.partial : this.#worst;
  }
}

/** `upload: a.txt → s3://b/a.txt` */
export function titleOf(verb: string, from: string, to: string): string {
  return `${verb}: ${from} → ${to}`;
}
