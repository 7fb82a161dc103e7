/**
 * An account's buckets in an export: their settings, all versions of all objects, and a file with a
 * line of JSON for each version and delete marker.
 */
import {
  type ExportedFile,
  type Exporting,
  type ExportSource,
  jsonFile,
  type LeftOutFile,
  piecesFile,
  type Spool,
  safePath,
  Unreadable,
} from '../../calls/account-export.ts';
import { formatTime } from '../../platform/clock.ts';
import { endOfTick } from '../../platform/concurrency.ts';
import { isAppError } from '../../platform/errors.ts';
import { type BucketSettings, settingsOf } from '../buckets/bucket-settings.ts';
import { type BucketRow, isSoundBucket } from '../buckets/bucket-sql.ts';
import type { Buckets } from '../buckets/buckets.ts';
import { shown } from '../buckets/setting-entries.ts';
import type { NamedKeys } from '../keys/named-keys.ts';
import { presentLock } from '../listing/entries.ts';
import type { Content, Downloads } from '../objects/downloads.ts';
import type { EntryRow, ObjectSql } from '../objects/object-sql.ts';
import type { Shares } from '../shares/shares.ts';

export interface ExportedBucketsDeps {
  readonly store: ObjectSql;
  readonly buckets: Pick<Buckets, 'list'>;
  readonly namedKeys: Pick<NamedKeys, 'list'>;
  readonly downloads: Pick<Downloads, 'find' | 'read' | 'countSent'>;
  readonly shares: Pick<Shares, 'list'>;
}

const PAGE = 1000;
const ID_CHARACTERS = 6;
/** Why the bytes of a version are missing, by the error of reading them. */
const REASONS = {
  customer_key_required: 'encrypted with a key that only the client has (SSE-C)',
  encryption_key_disabled: 'encrypted with a key of the account that is disabled',
  data_corrupted: 'the stored data is damaged',
} as const;

interface Version {
  readonly row: EntryRow;
  readonly isLatest: boolean;
  /** Path of its bytes in the archive. */
  readonly path: string;
}

export class ExportedBuckets implements ExportSource {
  readonly #deps: ExportedBucketsDeps;

  constructor(deps: ExportedBucketsDeps) {
    this.#deps = deps;
  }

  async *files(exporting: Exporting): AsyncGenerator<ExportedFile | LeftOutFile> {
    const { buckets, namedKeys, shares } = this.#deps;
    const { owner } = exporting;
    yield jsonFile('encryption-keys.json', await namedKeys.list(owner));
    // The address of a shared link opens it.
    const shared = (await shares.list(owner)).map(({ url: _, ...share }) => share);
    yield jsonFile('shared-links.json', shared);
    for await (const listed of buckets.list(owner, 0, Number.POSITIVE_INFINITY)) {
      const { row } = listed;
      const folder = `buckets/${row.name}`;
      const isSound = isSoundBucket(row);
      const settings = isSound ? settingsOf(row) : ({} as BucketSettings);
      const described = { bucket: listed.toJSON(), settings: shown(settings, owner.canonicalId) };
      yield jsonFile(`${folder}/bucket.json`, described, 'bucket');
      if (!isSound) yield { path: `${folder}/bucket.json`, leftOut: 'the settings are damaged' };
      const lines = exporting.spool();
      for await (const version of this.#versions(row, folder)) {
        const reason = version.row.blob === null ? null : yield* this.#bytes(version, exporting);
        await lines.append(Buffer.from(`${JSON.stringify(describe(version, reason))}\n`));
        // Small objects come from memory: a fast reader would take all of them in one event-loop turn.
        await endOfTick();
      }
      yield spooled(`${folder}/versions.jsonl`, lines);
    }
  }

  /** Yields the bytes of a version; returns null, or why they are missing. */
  async *#bytes(
    { row, path }: Version,
    exporting: Exporting,
  ): AsyncGenerator<ExportedFile | LeftOutFile, string | null> {
    const found = await this.#find(row, exporting);
    if (typeof found !== 'string') {
      yield this.#file({ row, path }, found, exporting);
      return null;
    }
    yield { path, leftOut: found };
    return found;
  }

  /** The content, or the reason why it cannot be exported. */
  async #find(row: EntryRow, { owner }: Exporting): Promise<Content | string> {
    try {
      return await this.#deps.downloads.find(owner, row.object_id, row.version_id);
    } catch (error) {
      for (const [code, reason] of Object.entries(REASONS)) {
        if (isAppError(error, code as keyof typeof REASONS)) return reason;
      }
      if (isAppError(error, 'version_not_found') || isAppError(error, 'object_not_found'))
        return 'it was deleted while the export ran';
      throw error;
    }
  }

  #file({ row, path }: Pick<Version, 'row' | 'path'>, content: Content, exporting: Exporting): ExportedFile {
    const { downloads } = this.#deps;
    const { sizeBytes, createdAt: modifiedAt } = content;
    return {
      path,
      kind: 'version',
      modifiedAt,
      sizeBytes,
      read: async (write, signal) => {
        const sink = async (chunk: Uint8Array) => {
          await write(chunk);
          if (exporting.isCounted) downloads.countSent(content, chunk.length);
        };
        try {
          await downloads.read(content, { range: { start: 0, end: sizeBytes }, sink, signal });
        } catch (error) {
          if (isAppError(error, 'data_corrupted'))
            throw new Unreadable(`${REASONS.data_corrupted} (version ${row.version_id})`, { cause: error });
          throw error;
        }
      },
    };
  }

  /** By name, each name's versions oldest first. */
  async *#versions(bucket: BucketRow, folder: string): AsyncGenerator<Version> {
    let row: EntryRow | undefined;
    for await (const next of this.#rows(bucket.id)) {
      if (row !== undefined) yield await this.#version(bucket, folder, { row, next });
      row = next;
    }
    if (row !== undefined) yield await this.#version(bucket, folder, { row, next: undefined });
  }

  async #version(
    bucket: BucketRow,
    folder: string,
    { row, next }: { readonly row: EntryRow; readonly next: EntryRow | undefined },
  ): Promise<Version> {
    const isLatest = next?.object !== row.object;
    const safe = safePath(row.name);
    // No two names may become equal, and no name may become a folder of others.
    const isOwn =
      safe === row.name &&
      !(isLatest && next !== undefined && (await this.#isFolder(bucket, row.name, next)));
    const own = isOwn ? safe : `${safe}~${row.object_id.slice(-ID_CHARACTERS)}`;
    const path = isLatest
      ? `${folder}/objects/${own}`
      : `${folder}/versions/${own}/${row.version_id.slice(0, 100)}`;
    return { row, isLatest, path };
  }

  /** Whether other objects lie "in" this one: `a/b` beside `a`. */
  async #isFolder(bucket: BucketRow, name: string, next: EntryRow): Promise<boolean> {
    // Rows are in order of name: names that begin with this one follow it.
    if (!next.name.startsWith(name)) return false;
    const inside = `${name}/`;
    if (next.name.startsWith(inside)) return true;
    const [first] = await this.#deps.store.historyEntries(bucket.id, { name: inside, id: 0 }, 1);
    return first?.name.startsWith(inside) === true;
  }

  async *#rows(bucketId: number): AsyncGenerator<EntryRow> {
    let after = { name: '', id: 0 };
    for (;;) {
      const rows = await this.#deps.store.historyEntries(bucketId, after, PAGE);
      yield* rows;
      const last = rows.at(-1);
      if (rows.length < PAGE || last === undefined) return;
      after = { name: last.name, id: last.id };
      await endOfTick();
    }
  }
}

function spooled(path: string, spool: Spool): ExportedFile {
  return piecesFile(path, async function* () {
    yield* spool.bytes();
    await spool.close();
  });
}

/** A line of versions.jsonl. */
function describe({ row, isLatest, path }: Version, reason: string | null) {
  const parsed = (text: string | null) => (text === null ? null : JSON.parse(text));
  return {
    name: row.name,
    version_id: row.version_id,
    is_latest: isLatest,
    is_delete_marker: row.blob === null,
    file: row.blob === null || reason !== null ? null : path,
    left_out: reason,
    size: row.size_bytes,
    etag: row.etag,
    mime_type: row.mime_type,
    storage_class: row.storage_class,
    created_at: formatTime(row.created_at),
    metadata: parsed(row.metadata),
    headers: parsed(row.headers),
    tags: parsed(row.tags),
    acl: parsed(row.acl),
    checksum: parsed(row.checksum),
    ...presentLock(row),
  };
}
