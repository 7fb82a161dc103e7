/** Lists a bucket as S3 does: by prefix and any delimiter, page by page, each page found by a seek. */
import type { Awaitable } from '../../metadata/metadata.ts';
import type { BucketRow } from '../buckets/bucket-sql.ts';
import type { EntryRow, ListedRow, ObjectSql } from '../objects/object-sql.ts';
import type { PartUploadRow, PartUploadSql } from '../uploads/part-upload-sql.ts';
import { afterFolder, folderOf, walkFolder } from './folder-walk.ts';
import { ALL_ROWS, type PageEndSql } from './page-end-sql.ts';

export type { EntryRow, ListedRow, StoredChecksum } from '../objects/object-sql.ts';

export interface NameQuery {
  readonly prefix: string;
  /** Names that contain it after the prefix are shown as one common prefix; empty: none are. */
  readonly delimiter: string;
  /** Entries after this name or common prefix. */
  readonly after: string | null;
  readonly limit: number;
}

export interface NamePage<T> {
  readonly rows: readonly T[];
  readonly prefixes: readonly string[];
  /** The last name or common prefix of the page; null: there are no more. */
  readonly next: string | null;
}

export interface VersionsPage extends Omit<NamePage<EntryRow>, 'next'> {
  /** The last entry of the page. */
  readonly next: { readonly name: string; readonly versionId: string | null } | null;
}

export interface UploadsPage extends Omit<NamePage<PartUploadRow>, 'next'> {
  readonly next: { readonly name: string; readonly uploadId: string | null } | null;
}

const BATCH = 1000;

interface NameListingDeps {
  readonly store: ObjectSql;
  readonly partUploadSql: PartUploadSql;
  readonly pageEndSql: PageEndSql;
}

export class NameListing {
  readonly #deps: NameListingDeps;

  constructor(deps: NameListingDeps) {
    this.#deps = deps;
  }

  /** Live objects, with all of their versions' columns. */
  objects(bucket: BucketRow, query: NameQuery): Promise<NamePage<EntryRow>> {
    return livePage(query, (from, count) => this.#deps.store.liveEntries(bucket.id, from, count));
  }

  /** Live objects, with what a list shows of them. */
  listed(bucket: BucketRow, query: NameQuery): Promise<NamePage<ListedRow>> {
    return livePage(query, (from, count) => this.#deps.store.listedEntries(bucket.id, from, count));
  }

  /**
   * All versions and markers, by name and then newest first. `before`: the id of the version of the
   * name `after` that ended the last page, and may be gone. First come its older versions, then the
   * later names.
   */
  async versions(
    bucket: BucketRow,
    query: NameQuery & { readonly before: string | null },
  ): Promise<VersionsPage> {
    const { store, pageEndSql } = this.#deps;
    const { prefix, after, before, limit } = query;
    if (limit === 0) return { rows: [], prefixes: [], next: null };
    const rest = async (count: number) => {
      const object = after === null || before === null ? undefined : await store.named(bucket.id, after);
      if (object === undefined || before === null) return [];
      const rowId = await pageEndSql.beforeVersion(object.id, before);
      return rowId === undefined ? [] : store.versionsOf(object, rowId, count);
    };
    const read = (from: From, count: number) => store.allEntries(bucket.id, from, count);
    const more = (row: EntryRow, count: number) =>
      store.versionsOf({ id: row.object, bucket_id: bucket.id }, row.id, count);
    const first = after?.startsWith(prefix) === true ? await rest(limit + 1) : [];
    const page = await collect({ query, first, read, more });
    const { last } = page;
    const versionId = last?.row === undefined ? null : shownId(last.row);
    return { ...page, next: page.isCut && last ? { name: last.name, versionId } : null };
  }

  /**
   * Open multipart uploads, by name and then age. `afterUpload`: the id of the upload of the name
   * `after` that ended the last page, and may have ended. First come its younger uploads, then the
   * later names.
   */
  async uploads(
    bucket: BucketRow,
    query: NameQuery & { readonly afterUpload: string | null },
  ): Promise<UploadsPage> {
    const { partUploadSql, pageEndSql } = this.#deps;
    const { after, afterUpload, limit } = query;
    if (limit === 0) return { rows: [], prefixes: [], next: null };
    const read = (from: From, count: number) =>
      partUploadSql.openPage(bucket.id, { name: from.name, id: from.after ? ALL_ROWS : 0 }, count);
    const more = (row: PartUploadRow, count: number) => this.#sameName(bucket, row, count);
    const rest = async (name: string, uploadId: string) => {
      const id = await pageEndSql.afterUpload(bucket.id, name, uploadId);
      return this.#sameName(bucket, { name, id }, limit + 1);
    };
    const first = after === null || afterUpload === null ? [] : await rest(after, afterUpload);
    const page = await collect({ query, first, read, more });
    const { last } = page;
    const next = { name: last?.name ?? '', uploadId: last?.row?.upload_id ?? null };
    return { ...page, next: page.isCut ? next : null };
  }

  async #sameName(
    bucket: BucketRow,
    { name, id }: Pick<PartUploadRow, 'name' | 'id'>,
    count: number,
  ): Promise<PartUploadRow[]> {
    const rows = await this.#deps.partUploadSql.openPage(bucket.id, { name, id }, count);
    return rows.filter((row) => row.name === name);
  }
}

/** The version id that S3 clients see. */
export function shownId({ version_id, is_null }: Pick<EntryRow, 'version_id' | 'is_null'>): string {
  return is_null === 1 ? 'null' : version_id;
}

interface From {
  readonly name: string;
  readonly after: boolean;
}

async function livePage<T extends { readonly name: string }>(
  query: NameQuery,
  read: (from: From, count: number) => Awaitable<T[]>,
): Promise<NamePage<T>> {
  const { prefix, delimiter, limit } = query;
  const page = { rows: [] as T[], prefixes: [] as string[] };
  if (limit === 0) return { ...page, next: null };
  const batch = Math.min(limit + 1, BATCH);
  let last = '';
  for await (const step of walkFolder({
    read,
    prefix,
    delimiter,
    order: 'asc',
    start: startOf(query),
    batch,
  })) {
    if (page.rows.length + page.prefixes.length === limit) return { ...page, next: last };
    if (step.kind === 'object') page.rows.push(step.row);
    else page.prefixes.push(step.name);
    last = step.name;
  }
  return { ...page, next: null };
}

function startOf({ prefix, delimiter, after }: NameQuery): From {
  if (after === null || after < prefix) return { name: prefix, after: false };
  return delimiter !== '' && folderOf(after, prefix, delimiter) === after
    ? afterFolder(after, 'asc')
    : { name: after, after: true };
}

interface Collected<T> {
  readonly query: NameQuery;
  /** Rows of the name at which the last page ended. */
  readonly first: readonly T[];
  readonly read: (from: From, limit: number) => Awaitable<T[]>;
  /** The rows of the same name after this one. */
  readonly more: (row: T, limit: number) => Awaitable<T[]>;
}

/** A page of rows, several per name; a common prefix counts as one entry. */
async function collect<T extends { readonly name: string }>({ query, first, read, more }: Collected<T>) {
  const { prefix, delimiter, limit } = query;
  const rows: T[] = [...first];
  const prefixes: string[] = [];
  let last: { readonly name: string; readonly row?: T } | undefined;
  const isFull = () => rows.length + prefixes.length > limit;
  const start = startOf(query);
  let wasLast = false;
  const grouped = async (from: From, count: number) => {
    const found = await read(from, count);
    wasLast = found.length < count;
    return firstOfEach(found, count);
  };
  const batch = Math.min(limit + 1, BATCH);
  const walk = {
    read: grouped,
    prefix,
    delimiter,
    order: 'asc',
    start,
    batch,
    isEnd: () => wasLast,
  } as const;
  if (!isFull()) {
    for await (const step of walkFolder<Group<T>>(walk)) {
      if (step.kind === 'folder') prefixes.push(step.name);
      else {
        rows.push(...step.row.rows);
        const end = step.row.rows.at(-1);
        if (end && step.row.isCut && !isFull())
          rows.push(...(await more(end, limit + 1 - rows.length - prefixes.length)));
      }
      if (isFull()) break;
    }
  }
  const isCut = isFull();
  while (isFull()) {
    const [name, folder] = [rows.at(-1)?.name, prefixes.at(-1)];
    if (name === undefined || (folder !== undefined && isAfter(folder, name))) prefixes.pop();
    else rows.pop();
  }
  const [row, folder] = [rows.at(-1), prefixes.at(-1)];
  if (row && (folder === undefined || isAfter(row.name, folder))) last = { name: row.name, row };
  else if (folder !== undefined) last = { name: folder };
  return { rows, prefixes, last, isCut };
}

interface Group<T> {
  readonly name: string;
  readonly rows: T[];
  /** There may be more rows of that name. */
  readonly isCut: boolean;
}

/** Rows grouped by name; as many groups as rows were requested, if there are that many names. */
function firstOfEach<T extends { readonly name: string }>(rows: readonly T[], asked: number): Group<T>[] {
  const groups: { name: string; rows: T[]; isCut: boolean }[] = [];
  for (const row of rows) {
    const group = groups.at(-1);
    if (group?.name === row.name) group.rows.push(row);
    else groups.push({ name: row.name, rows: [row], isCut: false });
  }
  const end = groups.at(-1);
  if (end && rows.length === asked) end.isCut = true;
  return groups;
}

function isAfter(a: string, b: string): boolean {
  return Buffer.compare(Buffer.from(a), Buffer.from(b)) > 0;
}
