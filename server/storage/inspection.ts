/** The record of one object with its versions. */
import type { Principal } from '../accounts/principal.ts';
import type { AccessTimes } from './access-times.ts';
import { presentEntry } from './entries.ts';
import { notFound, type Objects } from './objects.ts';
import type { ObjectDetails } from './schema.ts';
import type { ObjectStore } from './store.ts';

const VERSIONS_SHOWN = 1000;

export class Inspection {
  readonly #deps: { objects: Objects; store: ObjectStore; accessTimes: AccessTimes };

  constructor(deps: { objects: Objects; store: ObjectStore; accessTimes: AccessTimes }) {
    this.#deps = deps;
  }

  /** Of the current version or, behind a delete marker, of the marker. Throws `object_not_found`. */
  async describe(principal: Principal, objectId: string): Promise<ObjectDetails> {
    const object = await this.#deps.objects.findFor(principal, objectId);
    const rows = await this.#deps.store.versionsOf(object, Number.MAX_SAFE_INTEGER, VERSIONS_SHOWN);
    const newest = rows[0];
    if (!newest) throw notFound(objectId);
    return {
      ...presentEntry(newest, this.#deps.accessTimes, false),
      bucket: object.bucket,
      version_id: newest.version_id,
      is_delete_marker: newest.blob === null,
      versions: rows.map((row) => presentEntry(row, this.#deps.accessTimes, true)),
    };
  }
}
