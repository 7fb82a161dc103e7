/** Compares a restored cloud with the manifest and the indexes of its point. */

import type { Reads } from '../../metadata/metadata.ts';
import { randomBelow } from '../../platform/ids.ts';
import { plural } from '../../platform/plural.ts';
import { type Entry, entriesOf, type Manifest } from '../points/manifest.ts';
import type { Repository } from '../repository/repository.ts';
import { RecoveryStore } from '../store.ts';
import type { DrillCheck } from './drill.ts';

/** Thrown if this host cannot run a check, with the reason. */
export class CheckSkipped extends Error {}

/** Runs checks in order and keeps their results. */
export class DrillChecks {
  readonly all: DrillCheck[] = [];

  /** `work` resolves with the finding and rejects with the difference. True: passed. */
  async run(name: string, work: () => Promise<string>): Promise<boolean> {
    try {
      this.all.push({ name, state: 'passed', detail: await work() });
      return true;
    } catch (error) {
      const state = error instanceof CheckSkipped ? 'skipped' : 'failed';
      this.all.push({ name, state, detail: error instanceof Error ? error.message : String(error) });
      return false;
    }
  }
}

/** Compares the numbers of resources with the manifest. Rejects with those that differ. */
export async function compareCounts({ contents }: Manifest, reads: Reads): Promise<string> {
  const found = await new RecoveryStore(reads).contents();
  const wrong = Object.entries(contents).filter(([kind, count]) => found[kind] !== count);
  if (wrong.length > 0) {
    throw new Error(
      wrong.map(([kind, count]) => `${count} ${kind} in the point, ${found[kind]} restored`).join('; '),
    );
  }
  return Object.entries(contents)
    .map(([kind, count]) => plural(count, kind.replace(/s$/, '')))
    .join(', ');
}

const PAGE = 1000;
const SAMPLED_FILES = 64;
const SAMPLED_BYTES = 256 * 2 ** 20;

export interface ObjectSample {
  /** Paths in the data directory. */
  readonly files: readonly string[];
  /** Bytes on disk. */
  readonly bytes: number;
  /** Files of all objects in the point. */
  readonly total: number;
}

/**
 * Iterates over the files of objects in the point and the rows of the restored metadata, both in
 * order of name. Rejects if the bytes of a row are not in the point. Resolves with files chosen at
 * random.
 */
export async function compareObjects(
  repository: Repository,
  { components }: Manifest,
  reads: Reads,
): Promise<ObjectSample> {
  const component = components.find(({ name }) => name === 'objects');
  const sample = new Sample();
  const files = component === undefined ? none() : entriesOf(repository, component);
  let file = await files.next();
  const missing: string[] = [];
  let total = 0;
  for await (const name of blobNames(reads)) {
    while (!file.done && nameOf(file.value) < name) file = await files.next();
    if (file.done || nameOf(file.value) !== name) {
      missing.push(name);
      continue;
    }
    sample.offer(file.value);
    total++;
    file = await files.next();
  }
  if (missing.length > 0) {
    const files = plural(missing.length, 'file');
    throw new Error(`${files} of objects are not in the point, the first is ${missing[0]}`);
  }
  return { ...sample.taken(), total };
}

function nameOf({ path }: Entry): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

async function* none(): AsyncGenerator<Entry> {}

async function* blobNames(reads: Reads): AsyncGenerator<string> {
  const store = new RecoveryStore(reads);
  for (let after = ''; ; ) {
    const names = await store.blobs(after, PAGE);
    yield* names;
    after = names.at(-1) ?? after;
    if (names.length < PAGE) return;
  }
}

/** Uniform random sample of the offered files. */
class Sample {
  readonly #chosen: Entry[] = [];
  #offered = 0;

  offer(entry: Entry): void {
    const at = this.#offered < SAMPLED_FILES ? this.#offered : randomBelow(this.#offered + 1);
    this.#offered++;
    if (at < SAMPLED_FILES) this.#chosen[at] = entry;
  }

  /** Skips files that would exceed the byte limit, but takes at least one. */
  taken(): Pick<ObjectSample, 'files' | 'bytes'> {
    const files: string[] = [];
    let bytes = 0;
    for (const { path, size_bytes: size } of this.#chosen) {
      if (files.length > 0 && bytes + size > SAMPLED_BYTES) continue;
      files.push(path);
      bytes += size;
    }
    return { files, bytes };
  }
}

export function inMib(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}
