/** `cp` and `mv`. */
import { rm } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import type { Command, Invocation, Option } from '../command.ts';
import { ClientError, EXIT, type ExitCode, UsageError } from '../failures.ts';
import { below, hasWildcards, isAboutMany, LITERAL, nothingAt, objectsAt } from './below.ts';
import { writeOut } from './browse-commands.ts';
import { isFolder } from './download.ts';
import { filesBelow, localFile } from './local-tree.ts';
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
    const plan = new CopyPlan(call, { transfer, target, isMove, isFew });
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
}

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
      yield this.#upload(await localFile(source, basename(source)), this.#remoteTarget(to, basename(source)));
      return;
    }
    if (!this.#call.options.has('recursive')) throw new UsageError(`${source} is a folder`, 'Use -r');
    for await (const file of filesBelow(source, transfer.leftOut)) {
      if (this.#isMeant(file.name)) yield this.#upload(file, this.#remoteTarget(to, file.name));
    }
  }

  /** Several files keep their names below the target; a single file takes the target's name. */
  #remoteTarget(to: RemoteLocation, name: string): RemoteLocation {
    if (this.#means.isFew && to.key !== '' && !to.key.endsWith('/')) return to;
    const folder = to.key === '' || to.key.endsWith('/') ? to.key : `${to.key}/`;
    return { bucket: to.bucket, key: `${folder}${name}` };
  }

  #upload(file: Awaited<ReturnType<typeof localFile>>, to: RemoteLocation): Task {
    const { transfer, isMove } = this.#means;
    const run = async () => {
      await transfer.upload(file, to);
      if (isMove) await rm(file.path);
    };
    return { title: titleOf('upload', file.path, shown(to)), bytes: file.size, run };
  }

  async *#fromCloud(source: string, location: RemoteLocation): AsyncGenerator<Task> {
    if (!isAboutMany(location, this.#call)) {
      if (location.key === '') throw new UsageError(`${source} is a bucket`, 'Use -r');
      const headers = await this.#means.transfer.s3.head(location.bucket, location.key);
      if (headers === undefined) throw await nothingAt(this.#call, location);
      const etag = (headers['etag'] ?? '').replaceAll('"', '');
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
      if (isMove) await transfer.s3.deleteOne(location.bucket, location.key);
    };
    if (remote !== undefined) {
      const to = this.#remoteTarget(remote, name);
      if (shown(to) === shown(location)) throw new UsageError(`${shown(to)} would be copied to itself`);
      const run = () => (isMove ? transfer.move(location, to) : transfer.copy(location, to));
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
    const within = isInFolder ? { within: { folder: target, name } } : {};
    const run = () => transfer.download({ from: location, etag, path, ...within }).then(removed);
    yield { title: titleOf('download', shown(location), path), bytes: size, run };
  }

  async #print(location: RemoteLocation): Promise<void> {
    await writeOut(await this.#means.transfer.s3.get(location), location);
  }
}
