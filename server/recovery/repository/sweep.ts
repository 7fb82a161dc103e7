/**
 * Removes unreferenced pieces from a repository by mark and sweep. A deleted point that can be undeleted
 * counts as live. An interrupted sweep starts over.
 */

import { AppError } from '../../platform/errors.ts';
import { PieceSet } from '../drill/verification.ts';
import { type Manifest, piecesOf, readManifest } from '../points/manifest.ts';
import type { Holding } from './lease.ts';
import { Damaged } from './piece-box.ts';
import type { Repository } from './repository.ts';

export interface Swept {
  /** Points with an unreadable index: while any exists, nothing is removed. */
  readonly unreadable: readonly string[];
  /** Points that reference missing pieces. */
  readonly incomplete: readonly string[];
  readonly removedPieces: number;
  readonly freedBytes: number;
  /** Unfinished files of killed writers. */
  readonly unfinished: number;
}

export interface SweepOptions {
  readonly repository: Repository;
  readonly holding: Holding;
  readonly signal: AbortSignal;
}

interface MarkOptions extends Pick<SweepOptions, 'repository' | 'signal'> {
  /** Points that do not count. */
  readonly without?: ReadonlySet<string>;
}

/** No point may be created meanwhile. */
export async function sweep(options: SweepOptions): Promise<Swept> {
  const { repository, holding, signal } = options;
  const { marks, manifests, unreadable } = await markAll(options);
  const swept = { unreadable, incomplete: [] as string[], removedPieces: 0, freedBytes: 0, unfinished: 0 };
  await holding.assertHeld();
  swept.unfinished = await repository.removeUnfinished();
  const mayRemove = unreadable.length === 0 && repository.removal !== 'denied';
  for await (const piece of repository.pieces()) {
    signal.throwIfAborted();
    holding.signal.throwIfAborted();
    // Marks left at the end are missing pieces.
    if (marks.delete(piece) || !mayRemove) continue;
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

async function markAll({ repository, signal, without }: MarkOptions) {
  const marks = new PieceSet();
  const manifests = new Map<string, Manifest>();
  const unreadable: string[] = [];
  for (const id of await repository.points()) {
    if (without?.has(id)) continue;
    try {
      const found = await repository.getManifest(id);
      if (found === undefined) throw new Error(`the point ${id} disappeared during the sweep`);
      const manifest = readManifest(found.bytes);
      for await (const piece of piecesOf(repository, manifest.components)) {
        signal.throwIfAborted();
        marks.add(piece);
      }
      manifests.set(id, manifest);
    } catch (error) {
      if (!(error instanceof Damaged)) throw error;
      unreadable.push(id);
    }
  }
  for await (const piece of repository.logs.pieces()) marks.add(piece);
  return { marks, manifests, unreadable };
}

/** Pieces that only the points `without` reference. Throws `data_corrupted` while an index cannot be read. */
export async function* unreferencedPieces(
  repository: Repository,
  without: ReadonlySet<string>,
): AsyncGenerator<string> {
  const { marks, unreadable } = await markAll({ repository, without, signal: NEVER });
  if (unreadable.length > 0) throw unlisted(unreadable);
  for await (const piece of repository.pieces()) if (!marks.has(piece)) yield piece;
}

function unlisted(points: readonly string[]): AppError {
  return new AppError('data_corrupted', `The piece list of ${points.join(', ')} is damaged`, {
    hint: 'Delete that recovery point; until then nothing else can be removed',
  });
}

const NEVER = new AbortController().signal;

async function namesOneOf(
  marks: PieceSet,
  what: { readonly repository: Repository; readonly manifest: Manifest; readonly signal: AbortSignal },
): Promise<boolean> {
  for await (const piece of piecesOf(what.repository, what.manifest.components)) {
    what.signal.throwIfAborted();
    if (marks.has(piece)) return true;
  }
  return false;
}
