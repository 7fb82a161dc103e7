/** `cp`, `mv` and `rm`. */
import { rm } from 'node:fs/promises';
import { basename, join, sep } from 'node:path';
import type { Command, Invocation, Option } from '../command.ts';
import { ClientError, EXIT, type ExitCode, UsageError } from '../failures.ts';
import { counted } from '../output.ts';
import { assertMeant, YES } from '../things.ts';
import { objectsAt, writeOut } from './browse-commands.ts';
import { isFolder } from './download.ts';
import { filesBelow, localFile } from './local-tree.ts';
import {
  fixedBeginning,
  isPattern,
  type RemotePlace,
  remoteOnly,
  remotePlace,
  selection,
  shown,
  unsafeName,
} from './places.ts';
import { JOBS, s3Of, type Task, Transfer, titleOf } from './transfer.ts';

const COPY_OPTIONS: Readonly<Record<string, Option>> = {
  recursive: { short: 'r', summary: 'folders and prefixes, with all that is below' },
  include: { value: 'PATTERN', many: true, summary: 'only names that match' },
  exclude: { value: 'PATTERN', many: true, summary: 'not names that match' },
  jobs: { short: 'j', value: 'N', summary: `requests at the same time; default: ${JOBS}` },
};
const DETAILS = [
  'Places are s3://BUCKET/NAME, files of this computer, or - for standard input and output. A target that ends',
  'with / is a folder. With -r what is in a folder goes into the target; * and ? match within a folder, ** across.',
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
    summary: 'like cp, and remove each source after it is copied',
    details: DETAILS,
    options: COPY_OPTIONS,
    run: (call) => transferAll(call, true),
  },
  {
    name: 'rm',
    words: 'PLACE…',
    summary: 'delete objects; in a bucket with versions they can be restored',
    options: {
      recursive: { short: 'r', summary: 'everything below the prefix' },
      versions: { summary: 'all versions, for ever' },
      ...YES,
    },
    run: remove,
  },
];

const DELETED_AT_ONCE = 1000;

async function transferAll(call: Invocation, isMove: boolean): Promise<ExitCode> {
  const sources = call.words.slice(0, -1);
  const target = call.words.at(-1) ?? '';
  const transfer = await Transfer.begin(call);
  try {
    if (sources[0] === '-') {
      const to = remotePlace(target);
      if (to === undefined || to.key === '') throw new UsageError('standard input goes to s3://BUCKET/NAME');
      await transfer.uploadInput(to);
      return transfer.end();
    }
    const isFew = sources.length === 1 && !isPattern(sources[0] ?? '') && !call.options.has('recursive');
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
      const place = remotePlace(source);
      if (place === undefined) yield* this.#fromHere(source);
      else yield* this.#fromCloud(source, place);
    }
    this.#means.transfer.progress.expectNoMore();
  }

  async *#fromHere(source: string): AsyncGenerator<Task> {
    const { transfer, target } = this.#means;
    const to = remotePlace(target);
    if (to === undefined) throw new UsageError('one of the places must be s3://BUCKET/NAME');
    if (!(await isFolder(source))) {
      yield this.#upload(await localFile(source, basename(source)), this.#remoteTarget(to, basename(source)));
      return;
    }
    if (!this.#call.options.has('recursive')) throw new UsageError(`${source} is a folder`, 'Use -r');
    for await (const file of filesBelow(source, transfer.leftOut)) {
      if (this.#isMeant(file.name)) yield this.#upload(file, this.#remoteTarget(to, file.name));
    }
  }

  /** Several files go below the target, one of them to its name. */
  #remoteTarget(to: RemotePlace, name: string): RemotePlace {
    if (this.#means.isFew && to.key !== '' && !to.key.endsWith('/')) return to;
    const folder = to.key === '' || to.key.endsWith('/') ? to.key : `${to.key}/`;
    return { bucket: to.bucket, key: `${folder}${name}` };
  }

  #upload(file: Awaited<ReturnType<typeof localFile>>, to: RemotePlace): Task {
    const { transfer, isMove } = this.#means;
    const run = async () => {
      await transfer.upload(file, to);
      if (isMove) await rm(file.path);
    };
    return { title: titleOf('upload', file.path, shown(to)), bytes: file.size, run };
  }

  async *#fromCloud(source: string, place: RemotePlace): AsyncGenerator<Task> {
    const isMany = isPattern(place.key) || this.#call.options.has('recursive');
    if (!isMany) {
      if (place.key === '') throw new UsageError(`${source} is a bucket`, 'Use -r');
      const headers = await this.#means.transfer.s3.head(place.bucket, place.key);
      if (headers === undefined) throw new ClientError(`there is no object ${source}`, EXIT.notFound);
      const etag = (headers['etag'] ?? '').replaceAll('"', '');
      const name = place.key.slice(place.key.lastIndexOf('/') + 1);
      yield* this.#fetch({ place, etag, size: Number(headers['content-length']) }, name);
      return;
    }
    // `-r s3://b/photos` is the folder, not everything whose name begins so.
    const isFolderName = !isPattern(place.key) && place.key !== '' && !place.key.endsWith('/');
    const from = isFolderName ? { ...place, key: `${place.key}/` } : place;
    const base = isPattern(from.key) ? fixedBeginning(from.key).replace(/[^/]*$/, '') : from.key;
    let count = 0;
    for await (const { key, size, etag } of objectsAt(this.#call, from)) {
      const name = key.slice(base.length);
      if (key.endsWith('/') || !this.#isMeant(name)) continue;
      count += 1;
      yield* this.#fetch({ place: { bucket: place.bucket, key }, etag, size }, name);
    }
    if (count === 0) throw new ClientError(`there is nothing at ${source}`, EXIT.notFound);
  }

  async *#fetch(
    object: { place: RemotePlace; etag: string; size: number },
    name: string,
  ): AsyncGenerator<Task> {
    const { transfer, target, isMove } = this.#means;
    const { place, etag, size } = object;
    const remote = remotePlace(target);
    const removed = async () => {
      if (isMove) await transfer.s3.deleteOne(place.bucket, place.key);
    };
    if (remote !== undefined) {
      const to = this.#remoteTarget(remote, name);
      if (shown(to) === shown(place)) throw new UsageError(`${shown(to)} would be copied to itself`);
      const run = () => transfer.copy(place, to).then(removed);
      yield { title: titleOf('copy', shown(place), shown(to)), bytes: size, run };
      return;
    }
    if (target === '-') {
      const run = () => this.#print(place);
      yield { title: titleOf('print', shown(place), '-'), bytes: size, run };
      return;
    }
    const why = unsafeName(name);
    if (why !== undefined) {
      transfer.failure(`download: ${shown(place)}`, new ClientError(`the name ${why}`));
      return;
    }
    const isInFolder = !this.#means.isFew || target.endsWith(sep) || (await isFolder(target));
    const path = isInFolder ? join(target, name) : target;
    const within = isInFolder ? { within: { folder: target, name } } : {};
    const run = () => transfer.download({ from: place, etag, path, ...within }).then(removed);
    yield { title: titleOf('download', shown(place), path), bytes: size, run };
  }

  async #print(place: RemotePlace): Promise<void> {
    await writeOut(await this.#means.transfer.s3.get(place), place);
  }
}

async function remove(call: Invocation): Promise<ExitCode> {
  const { options, output, words } = call;
  const s3 = await s3Of(call);
  let [count, failed] = [0, 0];
  for (const word of words) {
    const place = remoteOnly(word);
    const isMany = options.has('recursive') || isPattern(place.key);
    if (!isMany && place.key === '') throw new UsageError(`${word} is a bucket`, 'Use -r, or cloudlet rb');
    if (!isMany && !options.has('versions')) {
      if ((await s3.head(place.bucket, place.key)) === undefined)
        throw new ClientError(`there is no object ${shown(place)}`, EXIT.notFound);
      await s3.deleteOne(place.bucket, place.key);
      count += 1;
      continue;
    }
    await assertMeant(call, `Delete ${options.has('versions') ? 'all versions of ' : ''}${shown(place)}?`);
    for await (const some of inBatches(thingsAt(call, place, isMany))) {
      const refused = await s3.deleteMany(place.bucket, some);
      for (const { key, message } of refused) output.warn(`${key}: ${message}`);
      count += some.length - refused.length;
      failed += refused.length;
    }
  }
  output.note(`${counted(count, 'file')} deleted`);
  return failed > 0 ? EXIT.partial : EXIT.ok;
}

async function* thingsAt(call: Invocation, place: RemotePlace, isMany: boolean) {
  if (!call.options.has('versions')) {
    yield* objectsAt(call, place);
    return;
  }
  const s3 = await s3Of(call);
  for await (const { key, version } of s3.versions(place.bucket, fixedBeginning(place.key))) {
    if (isMany || key === place.key) yield { key, version };
  }
}

async function* inBatches<T>(items: AsyncIterable<T>): AsyncGenerator<T[]> {
  let batch: T[] = [];
  for await (const item of items) {
    batch.push(item);
    if (batch.length < DELETED_AT_ONCE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
