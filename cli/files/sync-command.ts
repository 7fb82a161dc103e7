/** `sync`: makes the target equal to the source, and continues after being killed. */
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command, Invocation } from '../command.ts';
import { ClientError, EXIT, type ExitCode } from '../failures.ts';
import { counted } from '../output.ts';
import { crc32OfFile, md5OfFile } from '../s3/checksums.ts';
import { S3Failure } from '../s3/s3-failure.ts';
import { folderKey } from './below.ts';
import { isFolder } from './download.ts';
import { filesBelow, type LocalFile } from './local-tree.ts';
import {
  neitherRemote,
  type RemoteLocation,
  remoteLocation,
  selection,
  shown,
  unsafeName,
} from './locations.ts';
import { merged, type Pair } from './merge.ts';
import { isSameTime, MTIME_HEADER, readMtime } from './mtime.ts';
import { objectsBelow, type RemoteFile } from './remote-tree.ts';
import { JOBS, type Task, Transfer, titleOf } from './transfer.ts';

const DELETED_AT_ONCE = 1000;

export const SYNC_COMMAND: Command = {
  name: 'sync',
  words: 'SOURCE TARGET',
  summary: 'make the target folder like the source; transfers only differences',
  details: [
    'At least one path is s3://BUCKET/FOLDER. Files are compared by size and time; the time is stored in',
    'the metadata "mtime". Symbolic links are skipped. Run an interrupted sync again to continue it.',
  ].join('\n'),
  options: {
    delete: { summary: 'delete extra files in the target after all copies succeed' },
    'max-delete': {
      value: 'N',
      summary: 'with --delete: delete nothing if more than N files would be deleted',
    },
    'dry-run': { short: 'n', summary: 'dry run: show what would be done' },
    checksum: { summary: 'compare the bytes (MD5), not size and time' },
    include: { value: 'PATTERN', many: true, summary: 'include only matching names: *.jpg, docs/**' },
    exclude: { value: 'PATTERN', many: true, summary: 'exclude matching names: *.tmp, node_modules/' },
    jobs: { short: 'j', value: 'N', summary: `requests at the same time; default: ${JOBS}` },
  },
  run: sync,
};

/** A file or an object. */
type SyncFile = { readonly name: string; readonly size: number } & (LocalFile | RemoteFile);

interface Side {
  /** Undefined: this computer. */
  readonly remote: RemoteLocation | undefined;
  readonly path: string;
}

function sideOf(word: string): Side {
  const remote = remoteLocation(word);
  if (remote === undefined) return { remote, path: word };
  return { remote: { bucket: remote.bucket, key: folderKey(remote.key) }, path: word };
}

async function sync(call: Invocation): Promise<ExitCode> {
  const [source, target] = [sideOf(call.words[0] ?? ''), sideOf(call.words[1] ?? '')];
  if (source.remote === undefined && target.remote === undefined)
    throw neitherRemote(call.words, 's3://BUCKET/FOLDER');
  if (source.remote === undefined && !(await isFolder(source.path)))
    throw new ClientError(`${source.path} is not a folder`, EXIT.notFound);
  if (target.remote === undefined && !call.options.has('dry-run'))
    await mkdir(target.path, { recursive: true });
  const transfer = await Transfer.begin(call);
  try {
    const plan = new Plan(call, { source, target, transfer });
    await transfer.run(plan.tasks());
    await plan.deleteExtra();
    const verb = call.options.has('dry-run') ? 'would be transferred' : transfer.progress.summary();
    const code = transfer.end();
    if (call.options.has('dry-run')) call.output.note(`${counted(plan.planned, 'file')} ${verb}`);
    else call.output.note(`${verb}; ${counted(plan.same, 'file')} unchanged, ${plan.deleted} deleted`);
    return code;
  } finally {
    transfer.progress.end();
  }
}

class Plan {
  readonly #call: Invocation;
  readonly #source: Side;
  readonly #target: Side;
  readonly #transfer: Transfer;
  readonly #extra: SyncFile[] = [];
  #isSourceThere = false;
  same = 0;
  planned = 0;
  deleted = 0;

  constructor(call: Invocation, means: { source: Side; target: Side; transfer: Transfer }) {
    this.#call = call;
    this.#source = means.source;
    this.#target = means.target;
    this.#transfer = means.transfer;
  }

  /** Yields transfers while the lists are read. */
  async *tasks(): AsyncGenerator<Task> {
    const { options } = this.#call;
    const isMeant = selection(options.list('include'), options.list('exclude'));
    for await (const pair of merged<SyncFile, SyncFile>(
      this.#files(this.#source),
      this.#files(this.#target),
    )) {
      if (pair.source !== undefined) this.#isSourceThere = true;
      if (!isMeant(pair.name)) continue;
      if (pair.source === undefined) {
        if (pair.target !== undefined && options.has('delete')) this.#extra.push(pair.target);
      } else if (this.#isRefused(pair.name)) {
      } else if (pair.target !== undefined && (await this.#isSame(pair.source, pair.target))) {
        this.same += 1;
      } else {
        this.planned += 1;
        const task = this.#taskFor(pair, pair.source);
        if (options.has('dry-run')) this.#call.output.line(task.title);
        else yield task;
      }
    }
    this.#transfer.progress.expectNoMore();
  }

  #files({ remote, path }: Side): AsyncGenerator<SyncFile> {
    if (remote !== undefined) return objectsBelow(this.#call.session().cloud, remote);
    return this.#local(path);
  }

  async *#local(path: string): AsyncGenerator<SyncFile> {
    if (path === this.#target.path && !(await isFolder(path))) return;
    yield* filesBelow(path, this.#transfer.leftOut);
  }

  #isRefused(name: string): boolean {
    const why = this.#target.remote === undefined ? unsafeName(name) : undefined;
    if (why !== undefined) this.#transfer.failure(`download: ${name}`, new ClientError(`the name ${why}`));
    return why !== undefined;
  }

  async #isSame(source: SyncFile, target: SyncFile): Promise<boolean> {
    if (source.size !== target.size) return false;
    if (this.#call.options.has('checksum')) return this.#isSameBytes(source, target);
    if ('etag' in source && 'etag' in target) return source.etag === target.etag;
    const [file, object] = 'etag' in source ? [target, source] : [source, target];
    return isSameVersion(file as LocalFile, object as RemoteFile, 'etag' in source);
  }

  /** The ETag of a multipart object is not an MD5; its CRC-32 is compared. */
  async #isSameBytes(source: SyncFile, target: SyncFile): Promise<boolean> {
    const [file, object] = 'etag' in source ? [target, source] : [source, target as RemoteFile];
    if ('etag' in file) return file.etag === object.etag;
    if (/^[0-9a-f]{32}$/.test(object.etag)) return (await md5OfFile(file.path, file.size)) === object.etag;
    const bucket = (this.#source.remote ?? this.#target.remote)?.bucket ?? '';
    const stored = (await this.#transfer.s3.head(bucket, object.key))?.['x-amz-checksum-crc32'];
    return stored === (await crc32OfFile({ path: file.path, start: 0, end: file.size }));
  }

  #taskFor({ name, target }: Pair<SyncFile, SyncFile>, source: SyncFile): Task {
    const bytes = source.size;
    const transfer = this.#transfer;
    if (this.#target.remote === undefined) {
      const { key, etag } = source as RemoteFile;
      const from = { bucket: this.#source.remote?.bucket ?? '', key };
      const path = join(this.#target.path, name);
      return {
        title: titleOf('download', shown(from), path),
        bytes,
        run: () => transfer.download({ from, etag, path, within: { folder: this.#target.path, name } }),
      };
    }
    const { bucket, key } = this.#target.remote;
    const to = { bucket, key: `${key}${name}` };
    if (this.#source.remote !== undefined) {
      const from = { bucket: this.#source.remote.bucket, key: (source as RemoteFile).key };
      return { title: titleOf('copy', shown(from), shown(to)), bytes, run: () => transfer.copy(from, to) };
    }
    const file = source as LocalFile;
    const run = () => this.#upload(file, to, target as RemoteFile | undefined);
    return { title: titleOf('upload', file.path, shown(to)), bytes, run };
  }

  /**
   * Only if the object is unchanged since it was listed: a late request of a killed client could complete
   * after the next client listed, and the file would be stored twice.
   */
  async #upload(file: LocalFile, to: RemoteLocation, listed: RemoteFile | undefined): Promise<void> {
    const condition = listed === undefined ? { 'if-none-match': '*' } : { 'if-match': `"${listed.etag}"` };
    try {
      await this.#transfer.upload(file, to, condition as Record<string, string>);
    } catch (error) {
      if (!(error instanceof S3Failure) || error.status !== 412) throw error;
      const there = await this.#transfer.s3.head(to.bucket, to.key);
      const mtimeMs = readMtime(there?.[MTIME_HEADER]);
      const isOurs = Number(there?.['content-length']) === file.size;
      if (isOurs && mtimeMs !== undefined && isSameTime(mtimeMs, file.mtimeMs)) return;
      throw error;
    }
  }

  /**
   * Nothing is deleted if a copy failed, or if too much would be deleted. A folder of a bucket
   * without an object is a mistyped name, which must not empty the target.
   */
  async deleteExtra(): Promise<void> {
    const { options, output } = this.#call;
    const extra = this.#extra;
    if (extra.length > 0 && !this.#isSourceThere && (this.#source.remote?.key ?? '') !== '') {
      const what = `the source ${this.#source.path} is empty`;
      throw new ClientError(`${what}; nothing was deleted`, EXIT.notFound);
    }
    const most = options.count('max-delete', Number.MAX_SAFE_INTEGER, 0);
    if (extra.length > most) {
      const what = `${counted(extra.length, 'file')} would be deleted, but --max-delete is ${most}`;
      throw new ClientError(`${what}; nothing was deleted`, EXIT.conflict);
    }
    if (options.has('dry-run')) {
      for (const { name } of extra) output.line(`delete: ${this.#titleIn(name)}`);
      return;
    }
    if (extra.length === 0) return;
    if (this.#transfer.failed > 0) {
      this.#transfer.progress.warn('nothing was deleted because some copies failed');
      return;
    }
    for (let at = 0; at < extra.length; at += DELETED_AT_ONCE)
      await this.#delete(extra.slice(at, at + DELETED_AT_ONCE));
  }

  #titleIn(name: string): string {
    const { remote, path } = this.#target;
    return remote === undefined
      ? join(path, name)
      : shown({ bucket: remote.bucket, key: `${remote.key}${name}` });
  }

  async #delete(files: readonly SyncFile[]): Promise<void> {
    const { remote } = this.#target;
    const refused = new Map<string, string>();
    if (remote === undefined) {
      for (const file of files) await rm((file as LocalFile).path, { force: true });
    } else {
      const keys = files.map((file) => ({ key: (file as RemoteFile).key }));
      for (const { key, message } of await this.#transfer.s3.deleteMany(remote.bucket, keys))
        refused.set(key, message);
    }
    for (const file of files) {
      const message = 'key' in file ? refused.get(file.key) : undefined;
      const title = `delete: ${this.#titleIn(file.name)}`;
      if (message !== undefined) this.#transfer.failure(title, new ClientError(message));
      else {
        this.deleted += 1;
        this.#transfer.progress.note(title);
      }
    }
  }
}

/** An object without the metadata `mtime` was stored by another program: its upload time is compared. */
function isSameVersion(file: LocalFile, object: RemoteFile, isDownload: boolean): boolean {
  if (object.mtimeMs !== undefined) return isSameTime(object.mtimeMs, file.mtimeMs);
  return isDownload ? isSameTime(object.storedMs, file.mtimeMs) : file.mtimeMs <= object.storedMs;
}
