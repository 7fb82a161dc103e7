/** The record of one object with its versions. */
import type { Principal } from '../calls/principal.ts';
import type { WriteBehind } from '../metadata/write-behind.ts';
import { presentEntry } from './entries.ts';
import type { ObjectSql } from './object-sql.ts';
import { notFound, type Objects } from './objects.ts';
import type { ObjectDetails } from './schema.ts';

/** Some of an object's versions, and where those after them begin. */
interface Description {
  readonly details: ObjectDetails;
  /** Row id of the last version shown; null: there are no more. */
  readonly next: number | null;
}

export interface VersionPage {
  readonly limit: number;
  /** Row id of a version; the page begins with the next older one. */
  readonly before?: number | undefined;
}

export class ObjectInspector {
  readonly #deps: { objects: Objects; store: ObjectSql; accessTimes: WriteBehind<number, number> };

  constructor(deps: { objects: Objects; store: ObjectSql; accessTimes: WriteBehind<number, number> }) {
    this.#deps = deps;
  }

  /**
   * The current version or, behind a delete marker, the marker, with a page of all versions. Throws
   * `object_not_found`.
   */
  async describe(
    principal: Principal,
    objectId: string,
    { limit, before = Number.MAX_SAFE_INTEGER }: VersionPage,
  ): Promise<Description> {
    const { objects, store, accessTimes } = this.#deps;
    const object = await objects.findFor(principal, objectId);
    const [newest] = await store.versionsOf(object, Number.MAX_SAFE_INTEGER, 1);
    if (!newest) throw notFound(objectId);
    const rows = await store.versionsOf(object, before, limit + 1);
    const shown = rows.slice(0, limit);
    const isTruncated = rows.length > limit;
    const details = {
      ...presentEntry(newest, accessTimes, false),
      bucket: object.bucket,
      version_id: newest.version_id,
      is_delete_marker: newest.blob === null,
      versions: shown.map((row) => presentEntry(row, accessTimes, true)),
      versions_truncated: isTruncated,
    };
    return { details, next: isTruncated ? (shown.at(-1)?.id ?? null) : null };
  }
}
