/**
 * Compares the histories of names in a recovery point with those of a live bucket. A history is
 * restored if the name has none, or the beginning of the same one: an interrupted restore
 * continues, and newer versions are never mixed with older ones.
 */
import type { Reads } from '../../metadata/metadata.ts';
import { type EntryRow, ObjectSql, type VersionRow } from '../objects/object-sql.ts';
import type { Place, Step } from './point-steps.ts';

const PAGE = 500;
/**
 * Versions of the point that may wait for the next one in both histories; above it, the name is not changed.
 */
const MAX_WAITING = 10_000;

/** Columns that are equal in equal versions of both histories. */
const MEMBERS = [
  ...(['size_bytes', 'etag', 'mime_type', 'metadata', 'headers', 'checksum'] as const),
  ...(['created_at', 'is_null'] as const),
];

function isSame(then: VersionRow, now: VersionRow): boolean {
  return (then.blob === null) === (now.blob === null) && MEMBERS.every((name) => now[name] === then[name]);
}

/** All versions and markers of a bucket in the point, by name and then oldest first, after `place`. */
export async function* historyEntries(
  reads: Reads,
  bucketId: number,
  { prefix, place }: { readonly prefix: string; readonly place: Place | undefined },
): AsyncGenerator<EntryRow> {
  const store = new ObjectSql(reads);
  for (let after = { name: place?.name ?? prefix, id: place?.id ?? 0 }; ; ) {
    const rows = await store.historyEntries(bucketId, after, PAGE);
    for (const row of rows) {
      if (!row.name.startsWith(prefix)) return;
      yield row;
    }
    const last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return;
    after = { name: last.name, id: last.id };
    // Reads are synchronous: other requests run between pages.
    await new Promise(setImmediate);
  }
}

/** A live name and the result of comparing its history. */
interface Live {
  readonly object: number | undefined;
  /** The last version in both histories. */
  readonly met: VersionRow | undefined;
  /** The live history differs. */
  readonly isOther: boolean;
}

/** The history of one live name, read in step with that of the recovery point. */
class Compared {
  readonly #store: ObjectSql;
  readonly #object: number | undefined;
  readonly #waiting: EntryRow[] = [];
  #page: VersionRow[] = [];
  /** The last version in both histories. */
  #met: { readonly id: number; readonly versionId: string | null };
  /** The live history differs. */
  #isOther = false;

  constructor(store: ObjectSql, { object, met, isOther }: Live) {
    this.#store = store;
    this.#object = object;
    this.#met = { id: met?.id ?? 0, versionId: met?.version_id ?? null };
    this.#isOther = isOther;
  }

  async *next(entry: EntryRow): AsyncGenerator<Step> {
    const now = this.#isOther ? undefined : await this.#peek();
    if (this.#isOther) yield this.#step(entry, 'keep');
    else if (now === undefined) yield this.#step(entry, 'new');
    else if (isSame(entry, now)) {
      // The live history lacks the earlier versions, which cannot be inserted between others.
      for (const each of this.#waiting.splice(0)) yield this.#step(each, 'keep');
      this.#met = { id: now.id, versionId: now.version_id };
      this.#page.shift();
      yield this.#step(entry, 'same');
    } else {
      this.#waiting.push(entry);
      if (this.#waiting.length > MAX_WAITING) yield* this.end();
    }
  }

  /** The live history has additional versions after the last one of the recovery point. */
  async *end(): AsyncGenerator<Step> {
    if (this.#waiting.length > 0) this.#isOther = true;
    for (const each of this.#waiting.splice(0)) yield this.#step(each, 'keep');
  }

  async #peek(): Promise<VersionRow | undefined> {
    if (this.#object === undefined) return undefined;
    if (this.#page.length === 0) {
      this.#page = await this.#store.oldestVersions(this.#object, PAGE, this.#met.id);
    }
    return this.#page[0];
  }

  #step(entry: EntryRow, kind: Step['kind']): Step {
    const { name, id } = entry;
    const place = {
      name,
      id,
      met: kind === 'new' ? 'newest' : this.#met.id,
      isOther: this.#isOther,
    } as const;
    return { entry, kind, freedBytes: 0, after: this.#met.versionId, place };
  }
}

/**
 * Yields a step for each entry. `bucketId`: the live bucket; undefined: none. `place`: the end of
 * an earlier part, whose steps are done.
 */
export async function* historySteps(
  store: ObjectSql,
  entries: AsyncIterable<EntryRow>,
  { bucketId, place }: { readonly bucketId: number | undefined; readonly place: Place | undefined },
): AsyncGenerator<Step> {
  let compared: Compared | undefined;
  let of: string | undefined;
  for await (const entry of entries) {
    if (compared === undefined || entry.name !== of) {
      if (compared !== undefined) yield* compared.end();
      of = entry.name;
      const object = bucketId === undefined ? undefined : (await store.named(bucketId, of))?.id;
      const known = place?.name === of ? place : undefined;
      const met = object && known && (await metAt(store, object, known));
      compared = new Compared(store, { object, met: met || undefined, isOther: known?.isOther ?? false });
    }
    yield* compared.next(entry);
  }
  if (compared !== undefined) yield* compared.end();
}

async function metAt(store: ObjectSql, object: number, { met }: Place): Promise<VersionRow | undefined> {
  return met === 'newest' ? store.newestVersion(object, 0) : store.version(met);
}
