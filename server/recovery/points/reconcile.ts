/**
 * Reconciles the rows of points with the target, of which they are a cache: after a restore, a kill or a
 * change of target.
 */
import { createHash } from 'node:crypto';
import { type Change, type Changes, type InFirst, inFirstCommit } from '../../metadata/change.ts';
import { type Clock, readTime } from '../../platform/clock.ts';
import { idTime } from '../../platform/ids.ts';
import type { DamagedFile } from '../drill/verification.ts';
import { Damaged, type Problem } from '../repository/piece-box.ts';
import { manifestFile, type Repository } from '../repository/repository.ts';
import { LASTING, newRow, type PointRow, type RecoveryStore } from '../store.ts';
import { readManifest } from './manifest.ts';

export interface ReconcileDeps {
  readonly store: RecoveryStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly repository: Repository;
  /** Path of the repository. */
  readonly location: string;
  /** The point being created, whose row is right; null: none. */
  readonly making: string | null;
  readonly graceMs: number;
  /** Stores the entry of the call in the first commit; default: no call. */
  readonly inFirst?: InFirst;
}

/** If both exist, the row is right: it is written last. */
export async function reconcile(deps: ReconcileDeps): Promise<void> {
  const { store, changes, repository, location, making, clock, graceMs } = deps;
  const { inFirst = inFirstCommit(undefined) } = deps;
  const there = new Set(await repository.points());
  const deleted = new Set(await repository.deleted());
  const rows = new Map((await store.listAt(location)).map((row) => [row.point_id, row]));
  for (const [id, row] of rows) {
    if (LASTING.includes(row.state) && !there.has(id)) {
      const damaged = store.setDamaged(id, lostPoint(id));
      await inFirst((call) => changes.run(call, (change) => void change.add(damaged)));
    }
    if (row.state === 'deleting' && there.has(id) && !deleted.has(id)) await repository.markDeleted(id);
    if (row.state !== 'deleting' && deleted.has(id)) await repository.unmarkDeleted(id);
  }
  for (const id of there) {
    const row = rows.get(id);
    const isKnown = row !== undefined && !mayBeBetter(row);
    if (isKnown || id === making) continue;
    const found = await rowOf(repository, id, location);
    const add = (change: Change) => {
      if (row !== undefined) {
        change.add(store.update({ ...found, id: row.id }));
        return;
      }
      change.add(store.insertWhole(found));
      if (!deleted.has(id)) return;
      change.add(store.setDeleting(found, { graceMs, deletesAt: clock.now() + graceMs }));
    };
    await inFirst((call) => changes.run(call, add));
  }
}

/**
 * Its manifest exists although the row says failed: it was complete just before a kill, or its disk is
 * mounted again.
 */
function mayBeBetter({ point_id, state, damage }: PointRow): boolean {
  if (state !== 'damaged') return ['creating', 'failed', 'cancelled'].includes(state);
  return damage === JSON.stringify(lostPoint(point_id).damage);
}

/** State of a point that is missing from the target. */
export function lostPoint(id: string) {
  return { reason: 'The recovery point is missing in the target', damage: [manifestDamage(id, 'missing')] };
}

function manifestDamage(id: string, problem: Problem): DamagedFile {
  return { file: manifestFile(id), problem, needed_by: 'all of it' };
}

async function rowOf(repository: Repository, id: string, target: string): Promise<PointRow> {
  const about = { point_id: id, target, created_at: idTime(id), scheduled_at: null };
  const unknown = newRow({ ...about, contents: '{}' });
  try {
    const found = await repository.getManifest(id);
    if (found === undefined) throw new Damaged('it is missing', 'missing');
    const { components, contents, gaps, cut_at, completed_at, scheduled_at } = readManifest(found.bytes);
    return {
      ...unknown,
      state: 'complete',
      percent: 100,
      created_at: readTime('cut_at', cut_at),
      completed_at: readTime('completed_at', completed_at),
      scheduled_at: scheduled_at === undefined ? null : readTime('scheduled_at', scheduled_at),
      size_bytes: components.reduce((sum, { size_bytes }) => sum + size_bytes, 0),
      contents: JSON.stringify(contents),
      gaps: JSON.stringify(gaps),
      manifest_sha256: createHash('sha256').update(found.sealed).digest('hex'),
    };
  } catch (error) {
    if (!(error instanceof Damaged)) throw error;
    const damage = JSON.stringify([manifestDamage(id, error.problem)]);
    const reason = 'The manifest is damaged';
    return { ...unknown, reason, damage, damaged_files: 1, state: 'damaged', completed_at: idTime(id) };
  }
}
