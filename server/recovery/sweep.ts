/**
 * Removes from a repository what no point names: first all that living points name is marked, then the rest
 * goes. A point that was deleted and can be had back is a living one. Killed anywhere, it is begun anew.
 */
import { entriesOf } from './entries.ts';
import type { Holding } from './lease.ts';
import { type Manifest, readManifest } from './manifest.ts';
import { Damaged } from './piece-box.ts';
import { PieceSet } from './piece-set.ts';
import type { Repository } from './repository.ts';

export interface Swept {
  /** Points whose list of pieces cannot be read: while there is one, nothing is removed. */
  readonly unreadable: readonly string[];
  /** Points that name a piece which is not there. */
  readonly incomplete: readonly string[];
  readonly removedPieces: number;
  readonly freedBytes: number;
  /** That a killed writer had only begun to write. */
  readonly unfinished: number;
}

export interface SweepOptions {
  readonly repository: Repository;
  readonly holding: Holding;
  readonly signal: AbortSignal;
}

/** No point may be made meanwhile. */
export async function sweep(options: SweepOptions): Promise<Swept> {
  const { repository, holding, signal } = options;
  const { marks, manifests, unreadable } = await markAll(options);
  const swept = { unreadable, incomplete: [] as string[], removedPieces: 0, freedBytes: 0, unfinished: 0 };
  await holding.assertHeld();
  swept.unfinished = await repository.removeUnfinished();
  for await (const piece of repository.pieces()) {
    signal.throwIfAborted();
    holding.signal.throwIfAborted();
    // What is left of the marks in the end is missing.
    if (marks.delete(piece) || unreadable.length > 0) continue;
    if (swept.removedPieces % CHECK_EVERY === 0) await holding.assertHeld();
    swept.freedBytes += await repository.removePiece(piece);
    swept.removedPieces++;
  }
  if (marks.size > 0) {
    for (const [id, manifest] of manifests) {
      if (await namesOneOf(marks, { repository, manifest, signal })) swept.incomplete.push(id);
    }
  }
  return swept;
}

const CHECK_EVERY = 1000;

async function markAll({ repository, signal }: SweepOptions) {
  const marks = new PieceSet();
  const manifests = new Map<string, Manifest>();
  const unreadable: string[] = [];
  for (const id of await repository.points()) {
    try {
      const found = await repository.getManifest(id);
      if (found === undefined) throw new Error(`the point ${id} is gone while it was looked at`);
      const manifest = readManifest(found.bytes);
      for await (const piece of piecesOf(repository, manifest)) {
        signal.throwIfAborted();
        marks.add(piece);
      }
      manifests.set(id, manifest);
    } catch (error) {
      if (!(error instanceof Damaged)) throw error;
      unreadable.push(id);
    }
  }
  return { marks, manifests, unreadable };
}

async function namesOneOf(
  marks: PieceSet,
  what: { readonly repository: Repository; readonly manifest: Manifest; readonly signal: AbortSignal },
): Promise<boolean> {
  for await (const piece of piecesOf(what.repository, what.manifest)) {
    what.signal.throwIfAborted();
    if (marks.has(piece)) return true;
  }
  return false;
}

/** All that a point names, those of its lists too. Throws Damaged. */
async function* piecesOf(repository: Repository, { components }: Manifest): AsyncGenerator<string> {
  for (const component of components) {
    yield* component.index;
    for await (const { pieces } of entriesOf(repository, component)) yield* pieces;
  }
}
