/**
 * Selections: lists of objects and folders to download together. Browsers navigate to a download,
 * and a URL cannot name thousands of objects; it contains the id of the list, which is kept for
 * some minutes.
 */
import { createHash } from 'node:crypto';
import type { Principal } from '../../calls/principal.ts';
import type { ShortTokens } from '../../calls/short-tokens.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Listing } from '../listing/listing.ts';

export interface SelectionsDeps {
  readonly tokens: Pick<ShortTokens, 'add' | 'find'>;
  readonly listing: Pick<Listing, 'bucketFor'>;
  readonly clock: Clock;
}

export interface Selection {
  readonly bucketId: number;
  /** Object names, sorted and without overlaps; a name that ends with "/" is a whole folder. */
  readonly names: readonly string[];
}

/** Browsers retry an interrupted download. */
const LIFE_MS = 15 * 60_000;
/** A list may take 1 MiB: above this number, the account's oldest one is dropped. */
const ROOM = { maxAll: 200, maxPerOwner: 10 };
const KIND = 'selection';

export class Selections {
  readonly #deps: SelectionsDeps;

  constructor(deps: SelectionsDeps) {
    this.#deps = deps;
  }

  /** `endsAt`: ms since 1970. Throws `bucket_not_found`, `scope_required`. */
  async keep(
    principal: Principal,
    bucketName: string,
    names: readonly string[],
  ): Promise<{ id: string; endsAt: number }> {
    const { tokens, listing, clock } = this.#deps;
    const chosen = withoutInner(names);
    const bucket = await listing.bucketFor(principal, bucketName, commonFolder(chosen));
    const id = newId('sel', clock);
    const selection: Selection = { bucketId: bucket.id, names: chosen };
    const owner = String(principal.accountId);
    await tokens.add(
      { kind: KIND, hash: hashOf(owner, id), owner, content: JSON.stringify(selection), lifeMs: LIFE_MS },
      ROOM,
    );
    return { id, endsAt: clock.now() + LIFE_MS };
  }

  /** The caller's selection. Throws `selection_not_found`, also for an expired one. */
  async find(principal: Principal, id: string): Promise<Selection> {
    const hash = hashOf(String(principal.accountId), id);
    const row = await this.#deps.tokens.find({ kind: KIND, hash });
    if (row !== undefined) return JSON.parse(row.content) as Selection;
    throw new AppError('selection_not_found', `There is no selection ${id}, or it has expired`, {
      hint: 'Choose the files again: POST /api/buckets/{name}/selections; a selection is kept for 15 minutes',
    });
  }
}

/** Another account's id is not found. */
function hashOf(owner: string, id: string): string {
  return createHash('sha256').update(`${owner}/${id}`).digest('base64url');
}

/** Sorted, without duplicates and without objects in a selected folder. */
function withoutInner(names: readonly string[]): string[] {
  let folder: string | undefined;
  return [...new Set(names)].sort().filter((name) => {
    if (folder !== undefined && name.startsWith(folder)) return false;
    if (name.endsWith('/')) folder = name;
    return true;
  });
}

/** The common folder of all, or a single folder itself; empty, or ends with "/". */
export function commonFolder(names: readonly string[]): string {
  const [first = ''] = names;
  let folder = first.slice(0, first.lastIndexOf('/') + 1);
  if (names.length > 1 && first === folder) folder = parentOf(folder);
  while (!names.every((name) => name.startsWith(folder))) folder = parentOf(folder);
  return folder;
}

const parentOf = (folder: string) => folder.slice(0, folder.lastIndexOf('/', folder.length - 2) + 1);
