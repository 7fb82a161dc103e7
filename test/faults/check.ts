/** Checks an idle cloud through its API against the oracle. */
import assert from 'node:assert/strict';
import type { Client } from '../harness/client.ts';
import { BUCKETS, type TestBucket } from './load.ts';
import { md5Of, type Oracle, type Write } from './oracle.ts';

interface Entry {
  readonly id: string;
  readonly name: string;
  readonly size: number;
  readonly etag: string;
  readonly metadata: { readonly w: number } | null;
  readonly version_id: string;
  readonly is_latest: boolean;
  readonly is_delete_marker: boolean;
}

export interface CheckOptions {
  readonly buckets?: readonly TestBucket[];
  /** Download everything, not only writes since the last check. */
  readonly allBytes?: boolean;
}

export class Checker {
  readonly #oracle: Oracle;
  /** The state of each unversioned name at the last check: the number of a put, or null for none. */
  readonly #seen = new Map<string, { at: number; number: number | null }>();
  /** Numbers of puts whose bytes were already verified once. */
  readonly #read = new Set<number>();

  constructor(oracle: Oracle) {
    this.#oracle = oracle;
  }

  /** Throws AssertionError with all errors. Afterwards no outcome is unknown any more. */
  async check(client: Client, { buckets = BUCKETS, allBytes = false }: CheckOptions = {}): Promise<void> {
    const problems: string[] = [];
    for (const bucket of buckets) {
      const say = (text: string) => problems.push(`${bucket.name}: ${text}`);
      const versions = await list(client, `${bucket.name}/files?include_versions=true`);
      const current = await list(client, `${bucket.name}/files`);
      compareListings(versions, current, say);
      await compareCounters(client, { bucket: bucket.name, versions, current, say });
      const writers = this.#writersOf(bucket, versions, say);
      if (bucket.versioning) this.#checkHistory(bucket.name, versions, say);
      else this.#checkValues(bucket.name, writers, say);
      await this.#checkBytes(client, writers, { allBytes, say });
    }
    assert.deepEqual(problems, []);
  }

  /** Each stored version with the put that wrote it. */
  #writersOf({ name }: TestBucket, versions: readonly Entry[], say: (text: string) => void) {
    const found = new Map<Entry, Write>();
    for (const entry of versions.filter((candidate) => !candidate.is_delete_marker)) {
      const write = this.#oracle.writes[entry.metadata?.w ?? -1];
      if (write?.kind !== 'put' || write.bucket !== name || write.name !== entry.name) {
        say(`${entry.name} ${entry.version_id} was never sent`);
        continue;
      }
      if (write.outcome === 'refused') say(`put ${write.number} was refused and is there: ${entry.name}`);
      if (write.md5 !== entry.etag || write.size !== entry.size) {
        say(`${entry.name} is a mix: put ${write.number} had ${write.size} bytes, ${entry.size} are listed`);
      }
      found.set(entry, write);
    }
    return found;
  }

  /** Unversioned: a name has the value of a write that no acknowledged one certainly followed. */
  #checkValues(bucket: string, writers: ReadonlyMap<Entry, Write>, say: (text: string) => void): void {
    const present = new Map([...writers].map(([entry, write]) => [entry.name, write]));
    for (const [name, writes] of groupByName(this.#oracle.writes, bucket)) {
      const key = `${bucket}/${name}`;
      const before = this.#seen.get(key) ?? { at: -1, number: null };
      const fresh = writes.filter((write) => write.ended > before.at && write.outcome !== 'refused');
      const isLast = (ended: number) =>
        !fresh.some((write) => write.outcome === 'acked' && write.began > ended);
      const allowed = new Set(
        fresh
          .filter((write) => isLast(write.ended))
          .map((write) => (write.kind === 'put' ? write.number : null)),
      );
      if (isLast(before.at)) allowed.add(before.number);
      const number = present.get(name)?.number ?? null;
      if (!allowed.has(number)) {
        say(`${name} holds ${shown(number)}; it may hold ${[...allowed].map(shown).join(' or ')}`);
      }
      for (const write of fresh) {
        this.#oracle.settle(write, write.kind === 'put' && write.number !== number ? 'refused' : 'acked');
      }
      this.#seen.set(key, { at: this.#oracle.now(), number });
    }
  }

  /** Versioned: every acknowledged version once, no refused one, in an order that the clients observed. */
  #checkHistory(bucket: string, versions: readonly Entry[], say: (text: string) => void): void {
    const entries = Map.groupBy(versions, (entry) => entry.name);
    for (const [name, writes] of groupByName(this.#oracle.writes, bucket)) {
      const listed = entries.get(name) ?? [];
      this.#checkVersions(writes, listed, (text) => say(`${name}: ${text}`));
      checkOrder(writes, listed, (text) => say(`${name}: ${text}`));
    }
  }

  #checkVersions(writes: readonly Write[], listed: readonly Entry[], say: (text: string) => void): void {
    const removals = writes.filter((write) => write.kind === 'delete-version' && write.outcome !== 'refused');
    const markers = new Set(
      listed.filter((entry) => entry.is_delete_marker).map((entry) => entry.version_id),
    );
    for (const write of writes) {
      if (write.kind === 'delete-version') continue;
      if (write.kind === 'delete') {
        if (write.outcome !== 'acked' || write.versionId === null) continue;
        if (!markers.delete(write.versionId)) say(`the marker of delete ${write.number} is lost`);
        continue;
      }
      const copies = listed.filter((entry) => entry.metadata?.w === write.number);
      const removed = removals.filter((removal) => removal.target === write.number);
      if (copies.length > 1) say(`put ${write.number} is there ${copies.length} times`);
      const [copy] = copies;
      if (copy && removed.some((removal) => removal.outcome === 'acked')) {
        say(`put ${write.number} was removed and is there again`);
      }
      if (write.outcome === 'acked' && !copy && removed.length === 0) say(`put ${write.number} is lost`);
      if (copy && write.outcome === 'acked' && copy.version_id !== write.versionId) {
        say(`put ${write.number} was told ${write.versionId}, it is listed as ${copy.version_id}`);
      }
      for (const removal of removed) this.#oracle.settle(removal, copy ? 'refused' : 'acked');
      this.#oracle.settle(write, copy ? 'acked' : 'refused', copy?.version_id);
    }
    this.#settleMarkers(writes, markers, say);
  }

  /** Markers without an answer must come from deletes without an answer; which one is irrelevant. */
  #settleMarkers(writes: readonly Write[], markers: Set<string>, say: (text: string) => void): void {
    const left = [...markers];
    for (const write of writes) {
      if (write.kind !== 'delete' || write.outcome !== 'unknown') continue;
      const marker = left.shift();
      this.#oracle.settle(write, marker === undefined ? 'refused' : 'acked', marker);
    }
    for (const marker of left) say(`nobody made the delete marker ${marker}`);
  }

  async #checkBytes(
    client: Client,
    writers: ReadonlyMap<Entry, Write>,
    { allBytes, say }: { allBytes: boolean; say: (text: string) => void },
  ): Promise<void> {
    for (const [entry, write] of writers) {
      if (this.#read.has(write.number) && !allBytes) continue;
      try {
        const bytes = await client.download(entry.id, `?version_id=${entry.version_id}`);
        if (md5Of(bytes) !== write.md5) say(`${entry.name}: the bytes of put ${write.number} are altered`);
        this.#read.add(write.number);
      } catch (error) {
        say(`${entry.name}: put ${write.number} (${write.size} bytes) cannot be read: ${error}`);
      }
    }
  }
}

async function list(client: Client, path: string): Promise<Entry[]> {
  const { status, body } = await client.call(`/api/buckets/${path}`);
  assert.equal(status, 200, `listing ${path}`);
  return body;
}

/** If A was answered before B was sent, A is the older version. */
function checkOrder(writes: readonly Write[], listed: readonly Entry[], say: (text: string) => void): void {
  const byVersion = new Map(writes.map((write) => [write.versionId, write]));
  let older: Write | undefined;
  for (const entry of [...listed].reverse()) {
    const write = byVersion.get(entry.version_id);
    if (write === undefined || write.outcome !== 'acked') continue;
    if (older && write.ended < older.began) {
      say(`write ${write.number} was answered before ${older.number} was sent, and is listed as newer`);
    }
    // Of all older ones, the one sent last is the strictest.
    if (older === undefined || write.began > older.began) older = write;
  }
}

function compareListings(
  versions: readonly Entry[],
  current: readonly Entry[],
  say: (text: string) => void,
): void {
  const latest = versions.filter((entry) => entry.is_latest);
  const live = latest.filter((entry) => !entry.is_delete_marker);
  const short = (entries: readonly Entry[]) => entries.map(({ id, name, etag }) => `${id} ${name} ${etag}`);
  if (new Set(latest.map((entry) => entry.name)).size !== new Set(versions.map((entry) => entry.name)).size) {
    say('a name has no or more than one latest version');
  }
  if (new Set(current.map((entry) => entry.name)).size !== current.length) say('a name is listed twice');
  try {
    assert.deepEqual(short(current), short(live));
  } catch (error) {
    say(`the listing and the latest versions differ: ${error}`);
  }
}

interface Listed {
  readonly bucket: string;
  readonly versions: readonly Entry[];
  readonly current: readonly Entry[];
  readonly say: (text: string) => void;
}

async function compareCounters(client: Client, { bucket, versions, current, say }: Listed): Promise<void> {
  const { body } = await client.call(`/api/buckets/${bucket}`);
  const sum = (entries: readonly Entry[]) => entries.reduce((total, entry) => total + entry.size, 0);
  const stored = versions.filter((entry) => !entry.is_delete_marker);
  const counted = [body.object_count, body.size, body.version_count, body.total_size].join(' ');
  const listed = [current.length, sum(current), stored.length, sum(stored)].join(' ');
  if (counted !== listed)
    say(`counters say ${counted}, the listing ${listed} (objects, bytes; versions, bytes)`);
}

function groupByName(writes: readonly Write[], bucket: string): Map<string, Write[]> {
  return Map.groupBy(
    writes.filter((write) => write.bucket === bucket),
    (write) => write.name,
  );
}

function shown(number: number | null): string {
  return number === null ? 'nothing' : `put ${number}`;
}
