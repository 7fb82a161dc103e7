/** `rm`: shows what will be deleted before asking. */
import type { Command, Invocation } from '../command.ts';
import { EXIT, type ExitCode, UsageError } from '../failures.ts';
import { counted, sizeText } from '../output.ts';
import { assertMeant, YES } from '../resources.ts';
import {
  isAboutMany,
  LITERAL,
  nothingAt,
  objectNamed,
  objectsAt,
  PATHS_DETAILS,
  versionsAt,
} from './below.ts';
import { type RemoteLocation, remoteOnly, shown } from './locations.ts';
import { s3Of } from './transfer.ts';

const DELETED_AT_ONCE = 1000;
/** Maximum names shown before asking. */
const NAMES_SHOWN = 3;

export const REMOVE_COMMAND: Command = {
  name: 'rm',
  words: 'PATH…',
  summary: 'delete objects; in a bucket with versioning they can be restored',
  details: PATHS_DETAILS,
  options: {
    recursive: { short: 'r', summary: 'delete everything in the folder' },
    versions: { summary: 'delete all versions permanently' },
    ...LITERAL,
    ...YES,
  },
  run: remove,
};

/** An object, or with `version` one of its versions. */
interface Leaving {
  readonly key: string;
  readonly size: number;
  readonly version?: string;
}

async function remove(call: Invocation): Promise<ExitCode> {
  const { options, output, words } = call;
  const s3 = await s3Of(call);
  let [count, failed] = [0, 0];
  for (const word of words) {
    const location = remoteOnly(word);
    const isMany = isAboutMany(location, call);
    if (!isMany && location.key === '') throw new UsageError(`${word} is a bucket`, 'Use -r, or cloudlet rb');
    if (!isMany && !options.has('versions')) {
      if ((await s3.head(location.bucket, location.key)) === undefined) throw await nothingAt(call, location);
      await s3.deleteOne(location.bucket, location.key);
      count += 1;
      continue;
    }
    if (isMany && (await objectNamed(call, location)) !== undefined)
      output.warn(`${shown(location)} is also an object and is kept. Without -r only that object is deleted`);
    if (!options.has('yes')) await askAbout(call, location);
    let found = 0;
    for await (const some of inBatches(leaving(call, location))) {
      const refused = await s3.deleteMany(location.bucket, some);
      for (const { key, message } of refused) output.warn(`${key}: ${message}`);
      found += some.length;
      count += some.length - refused.length;
      failed += refused.length;
    }
    if (found === 0 && location.key !== '') throw await nothingAt(call, location);
  }
  output.note(`${counted(count, 'file')} deleted`);
  return failed > 0 ? EXIT.partial : EXIT.ok;
}

/** Shows the total and the first names. Throws UsageError unless the answer is yes. */
async function askAbout(call: Invocation, location: RemoteLocation): Promise<void> {
  const { options, output } = call;
  const first: string[] = [];
  let [count, bytes] = [0, 0];
  for await (const { key, size } of leaving(call, location)) {
    [count, bytes] = [count + 1, bytes + size];
    if (first.length < NAMES_SHOWN && first.at(-1) !== key) first.push(key);
  }
  if (count === 0 && location.key !== '') throw await nothingAt(call, location);
  const noun = options.has('versions') ? 'version' : 'object';
  const total = `${counted(count, noun)}, ${sizeText(bytes)}`;
  output.ask(`${shown(location)}: ${total}`, ...first.map((key) => `  ${shown({ ...location, key })}`));
  if (count > first.length) output.ask('  …');
  const what = options.has('versions') ? `these ${total}, permanently` : `these ${total}`;
  await assertMeant(call, `Delete ${what}?`);
}

async function* leaving(call: Invocation, location: RemoteLocation): AsyncGenerator<Leaving> {
  if (!call.options.has('versions')) {
    yield* objectsAt(call, location);
    return;
  }
  if (isAboutMany(location, call)) {
    for await (const { key, size, version } of versionsAt(call, location)) yield { key, size, version };
    return;
  }
  for await (const { key, size, version } of (await s3Of(call)).versions(location.bucket, location.key)) {
    // Longer names with this prefix come later.
    if (key !== location.key) return;
    yield { key, size, version };
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
