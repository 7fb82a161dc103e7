/** `cp` and `mv`. */
import { createReadStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import type { Command, Invocation, Option } from '../command.ts';
import { ClientError, EXIT, type ExitCode, UsageError } from '../failures.ts';
import { below, hasWildcards, isAboutMany, LITERAL, nothingAt, objectsAt } from './below.ts';
import { writeOut } from './browse-commands.ts';
import { isFolder } from './download.ts';
import { filesBelow, type LocalFile, namedFile } from './local-tree.ts';
import {
  neitherRemote,
  type RemoteLocation,
  remoteLocation,
  selection,
  shown,
  unsafeName,
} from './locations.ts';
import { type Movable, movableBelow } from './move.ts';
import { JOBS, type Task, Transfer, titleOf } from './transfer.ts';

const COPY_OPTIONS: Readonly<Record<string, Option>> = {
  recursive: { short: 'r', summary: 'copy folders and their subfolders' },
  ...LITERAL,
  include: { value: 'PATTERN', many: true, summary: 'include only matching names' },
  exclude: { value: 'PATTERN', many: true, summary: 'exclude matching names' },
  jobs: { short: 'j', value: 'N', summary: `requests at the same time; default: ${JOBS}` },
};
const DETAILS = [
  'Paths are s3://BUCKET/NAME, local files, or - for standard input and output. A target that ends with / is',
  'a folder. -r copies the content of a folder into the target: s3://b/photos is the content of photos/, not',
  "of photos-old. In a remote source * and ? match within a folder, ** across folders: 's3://b/photos**' is every",
  'name with that prefix. --literal: names that contain * or ?.',
].join('\n');

export const COPY_COMMANDS: readonly Command[] = [
  {
    name: 'cp',
    words: 'SOURCE… TARGET',
    summary: 'copy files to the cloud, from it, or within it',
    details: DETAILS,
    options: COPY_OPTIONS,
    run: (call) => transferAll(call, false),
  },
  {
    name: 'mv',
    words: 'SOURCE… TARGET',
    summary: 'move files; between computer and cloud, each source is deleted after its copy',
    details: DETAILS,
    options: COPY_OPTIONS,
    run: (call) => transferAll(call, true),
  },
];

async function transferAll(call: Invocation, isMove: boolean): Promise<ExitCode> {
  const sources = call.words.slice(0, -1);
  const target = call.words.at(-1) ?? '';
  const transfer = await Transfer.begin(call);
  try {
    if (sources[0] === '-') {
      const to = remoteLocation(target);
      if (to === undefined || to.key === '')
        throw new UsageError('standard input (-) can only be copied to s3://BUCKET/NAME');
      await transfer.uploadInput(to);
      return transfer.end();
    }
    const from = remoteLocation(sources[0] ?? '');
    const isMany = call.options.has('recursive') || (from !== undefined && hasWildcards(from, call));
    const isFew = sources.length === 1 && !isMany;
    const isAlone = sources.length === 1;
    const plan = new CopyPlan(call, { transfer, target, isMove, isFew, isAlone });
    await transfer.run(plan.tasks(sources));
    const code = transfer.end();
    if (target !== '-' && code === EXIT.ok) call.output.note(transfer.progress.summary());
    return code;
  } finally {
    transfer.progress.end();
  }
}

interface CopyMeans {
  readonly transfer: Transfer;
  readonly target: string;
  readonly isMove: boolean;
  /** The target may be a name, not only a folder. */
  readonly isFew: boolean;
  /** There is one source, perhaps a folder. */
  readonly isAlone: boolean;
}

const ALONE = 'Copy this object separately, under another name';

interface Listed {
  readonly key: string;
  readonly size: number;
  readonly etag: string;
  readonly id?: string;
}

class CopyPlan {
  readonly #call: Invocation;
  readonly #means: CopyMeans;
  readonly #isMeant: (name: string) => boolean;
  /** Targets, with their sources. */
  readonly #targets = new Map<string, string>();

  constructor(call: Invocation, means: CopyMeans) {
    this.#call = call;
    this.#means = means;
    this.#isMeant = selection(call.options.list('include'), call.options.list('exclude'));
  }

  async *tasks(sources: readonly string[]): AsyncGenerator<Task> {
    for (const source of sources) {
      const location = remoteLocation(source);
      if (location === undefined) yield* this.#fromHere(source);
      else yield* this.#fromCloud(source, location);
    }
    this.#means.transfer.progress.expectNoMore();
  }

  async *#fromHere(source: string): AsyncGenerator<Task> {
    const { transfer, target } = this.#means;
    const to = remoteLocation(target);
    if (to === undefined) throw neitherRemote([source, target], 's3://BUCKET/NAME');
    if (!(await isFolder(source))) {
      const file = await namedFile(source, basename(source));
      const target = this.#remoteTarget(to, basename(source));
      if (file === null) yield this.#uploadStream(source, target);
      else yield* this.#upload(file, target);
      return;
    }
    if (!this.#call.options.has('recursive')) throw new UsageError(`${source} is a folder`, 'Use -r');
    for await (const file of filesBelow(source, transfer.leftOut)) {
      if (this.#isMeant(file.name)) yield* this.#upload(file, this.#remoteTarget(to, file.name));
    }
  }

  /**
   * Refuses the second source of a target: it would replace the first, and a move would delete both. One
   * source has each name once. For names that are one file here, see WrittenFiles.
   */
  #isTaken(source: string, target: string): boolean {
    const { transfer, isAlone } = this.#means;
    if (isAlone) return false;
    const first = this.#targets.get(target);
    if (first === undefined) this.#targets.set(target, source);
    else {
      const error = new ClientError(`${first} was just copied to this target`, EXIT.conflict, ALONE);
      transfer.failure(titleOf('copy', source, target), error);
    }
    return first !== undefined;
  }

  /** Several files keep their names below the target; a single file takes the target's name. */
  #remoteTarget(to: RemoteLocation, name: string): RemoteLocation {
    if (this.#means.isFew && to.key !== '' && !to.key.endsWith('/')) return to;
    const folder = to.key === '' || to.key.endsWith('/') ? to.key : `${to.key}/`;
    return { bucket: to.bucket, key: `${folder}${name}` };
  }

  *#upload(file: LocalFile, to: RemoteLocation): Generator<Task> {
    if (this.#isTaken(file.path, shown(to))) return;
    const { transfer, isMove } = this.#means;
    const run = async () => {
      await transfer.upload(file, to);
      if (isMove) await removeMoved(file);
    };
    yield { title: titleOf('upload', file.path, shown(to)), bytes: file.size, run };
  }

  /** A pipe, such as of `<(command)`, or a device. */
  #uploadStream(source: string, to: RemoteLocation): Task {
    const { transfer, isMove } = this.#means;
    if (isMove) throw new UsageError(`${source} is a pipe or a device, and cannot be moved`, 'Use cp');
    const run = () => transfer.uploadInput(to, createReadStream(source));
    return { title: titleOf('upload', source, shown(to)), bytes: 0, run };
  }

  async *#fromCloud(source: string, location: RemoteLocation): AsyncGenerator<Task> {
    if (!isAboutMany(location, this.#call)) {
      if (location.key === '') throw new UsageError(`${source} is a bucket`, 'Use -r');
      const headers = await this.#means.transfer.s3.head(location.bucket, location.key);
      if (headers === undefined) throw await nothingAt(this.#call, location);
      const etag = (headers.etag ?? '').replaceAll('"', '');
      const name = location.key.slice(location.key.lastIndexOf('/') + 1);
      yield* this.#fetch({ location, etag, size: Number(headers['content-length']) }, name);
      return;
    }
    const { folder } = below(location, this.#call);
    let count = 0;
    for await (const { key, size, etag, id } of this.#listed(location)) {
      const name = key.slice(folder.length);
      if (key.endsWith('/') || !this.#isMeant(name)) continue;
      count += 1;
      yield* this.#fetch({ location: { bucket: location.bucket, key, id }, etag, size }, name);
    }
    if (count === 0) throw await nothingAt(this.#call, location);
  }

  /** Includes object ids if they save calls. */
  async *#listed(location: RemoteLocation): AsyncGenerator<Listed> {
    const { isMove, target } = this.#means;
    const { prefix, has } = below(location, this.#call);
    const isWithin = isMove && remoteLocation(target) !== undefined;
    const { cloud } = this.#call.session();
    const movable = isWithin ? await movableBelow(cloud, location.bucket, prefix) : undefined;
    if (movable === undefined) yield* objectsAt(this.#call, location);
    else for await (const object of movable) if (has(object.key)) yield object;
  }

  async *#fetch(
    object: { location: Movable; etag: string; size: number },
    name: string,
  ): AsyncGenerator<Task> {
    const { transfer, target, isMove } = this.#means;
    const { location, etag, size } = object;
    const remote = remoteLocation(target);
    const removed = async () => {
      if (isMove) await transfer.deleteMoved(location, etag);
    };
    if (remote !== undefined) {
      const to = this.#remoteTarget(remote, name);
      if (shown(to) === shown(location)) throw new UsageError(`${shown(to)} would be copied to itself`);
      if (this.#isTaken(shown(location), shown(to))) return;
      const run = () => (isMove ? transfer.move(location, to, etag) : transfer.copy(location, to));
      yield { title: titleOf('copy', shown(location), shown(to)), bytes: size, run };
      return;
    }
    if (target === '-') {
      const run = () => this.#print(location);
      yield { title: titleOf('print', shown(location), '-'), bytes: size, run };
      return;
    }
    const why = unsafeName(name);
    if (why !== undefined) {
      transfer.failure(`download: ${shown(location)}`, new ClientError(`the name ${why}`));
      return;
    }
    const isInFolder = !this.#means.isFew || target.endsWith(sep) || (await isFolder(target));
    const path = isInFolder ? join(target, name) : target;
    if (this.#isTaken(shown(location), path)) return;
    const within = isInFolder ? { within: { folder: target, name } } : {};
    const run = () => transfer.download({ from: location, etag, path, isMove, ...within }).then(removed);
    yield { title: titleOf('download', shown(location), path), bytes: size, run };
  }

  async #print(location: RemoteLocation): Promise<void> {
    await writeOut(await this.#means.transfer.s3.get(location), location);
  }
}

/** Removes a file whose bytes were uploaded. Throws ClientError if it has changed since, and keeps it. */
async function removeMoved({ path, name, size, mtimeNs }: LocalFile): Promise<void> {
  const now = await namedFile(path, name);
  if (now?.size === size && now.mtimeNs === mtimeNs) return rm(path);
  throw new ClientError(`${path} changed while it was being uploaded, and is kept`, EXIT.conflict);
}
