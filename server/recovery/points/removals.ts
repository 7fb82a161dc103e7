/**
 * Deletes recovery points. A deleted point can be undeleted during a grace period that counts only while
 * Cloudlet runs, so setting the clock forward does not shorten it. Then its manifest and its unshared data
 * are removed.
 */
import {
  BACKGROUND,
  type CallEntry,
  type Change,
  type Changes,
  type InFirst,
  inFirstCommit,
  type Recorder,
} from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Semaphore } from '../../platform/concurrency.ts';
import { AppError } from '../../platform/errors.ts';
import type { Holding, Lease } from '../repository/lease.ts';
import { pieceFile, type Repository } from '../repository/repository.ts';
import { type Swept, sweep, unreferencedPieces } from '../repository/sweep.ts';
import { NotRemovable, type Removal } from '../repository/target.ts';
import type { Checked, Point, Removable } from '../schema.ts';
import { DELETABLE, type PointRow, type RecoveryStore } from '../store.ts';
import { inProgress, invalidState } from './point-refusals.ts';
import { type PointEvents, presentPoint } from './point-view.ts';
import type { Points } from './points.ts';
import { lostPoint, reconcile } from './reconcile.ts';

/** Maximum files in one response. */
const MOST_FILES = 100_000;

export interface RemovalsDeps {
  readonly store: RecoveryStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly lease: Lease;
  /** Held while unreferenced pieces are removed. */
  readonly sweeping: Semaphore;
  readonly news: PointEvents;
  /** Opens the repository, or creates it. Throws `target_unavailable`. */
  readonly repository: () => Promise<Repository>;
  /** Same as repository(), but does not create one. */
  readonly find: () => Promise<Repository | undefined>;
  /** True when the target is reachable but does not contain the points created there. */
  readonly isLost: () => Promise<boolean>;
  readonly points: Pick<Points, 'row' | 'making' | 'settled'>;
  /** Effect of removing files from the target. */
  readonly removal: () => Removal;
  /** Path of the repository. */
  readonly location: string;
  /** How long a deleted point can be undeleted, ms. */
  readonly graceMs: number;
  readonly onError: (pointId: string, error: unknown) => void;
}

export class Removals {
  readonly #deps: RemovalsDeps;
  #sweeping: { readonly cancel: AbortController; readonly ended: Promise<unknown> } | undefined;
  #countedAt: number;

  constructor(deps: RemovalsDeps) {
    this.#deps = deps;
    this.#countedAt = deps.clock.uptime();
  }

  /** Throws `point_not_found`, `point_invalid_state`, `target_in_use`, `target_unavailable`. */
  async remove(call: Recorder, pointId: string): Promise<Point> {
    const { store, changes, clock, graceMs, news } = this.#deps;
    const row = await this.#deps.points.row(pointId);
    if (row.state === 'deleting') return this.#present(row);
    if (!DELETABLE.includes(row.state)) {
      throw invalidState(row, 'is being created', 'Cancel it first');
    }
    // An incomplete point is useless, so it has no grace period.
    const grace = row.completed_at === null ? 0 : graceMs;
    if (row.completed_at !== null) await this.#write((repository) => repository.markDeleted(pointId));
    const response = await changes.run(call, async (change) => {
      const current = await this.#deps.points.row(pointId);
      // A concurrent request deleted it.
      if (current.state === 'deleting') return this.#present(current);
      const deletesAt = clock.now() + grace;
      const deleted: PointRow = { ...current, state: 'deleting', deletes_at: deletesAt };
      change.expect(store.setDeleting(current, { graceMs: grace, deletesAt }), 'retry');
      change.addAll(await news.of('recovery_point.deleted', deleted));
      return this.#present(deleted);
    });
    if (grace === 0) this.#sweepSoon();
    return response;
  }

  /** Throws `point_not_found`, `point_invalid_state`, `target_in_use`, `target_unavailable`. */
  async undelete(call: Recorder, pointId: string): Promise<Point> {
    const { store, changes } = this.#deps;
    const row = await this.#deps.points.row(pointId);
    if (row.state !== 'deleting') throw invalidState(row, 'is not deleted');
    const before = row.state_before;
    if (before === null || row.grace_left_ms === null || row.grace_left_ms <= 0) {
      throw invalidState(row, 'is being removed permanently');
    }
    const response = await changes.run(call, (change) => {
      change.expect(store.setUndeleted(row), () => invalidState(row, 'is being removed permanently'));
      return this.#present({ ...row, state: before, deletes_at: null, scheduled_at: null });
    });
    await this.#write((repository) => repository.unmarkDeleted(pointId));
    return response;
  }

  /** Reconciles the list with the target. */
  async reconcile(): Promise<void> {
    const { store, changes, location, points } = this.#deps;
    await changes.run(BACKGROUND, (change) => void change.add(store.removeElsewhere(location)));
    const repository = await this.#deps.find();
    if (repository !== undefined) await reconcile({ ...this.#deps, repository, making: points.making });
  }

  /** Counts the time since the last call, and removes due points. */
  async tick(): Promise<void> {
    const { store, changes, clock } = this.#deps;
    const passed = clock.uptime() - this.#countedAt;
    this.#countedAt += passed;
    await changes.run(BACKGROUND, (change) => void change.add(store.countGrace(passed, clock.now())));
    const due = await store.listDue();
    const mayRemove = this.#deps.removal() !== 'denied';
    if (mayRemove && due.length > 0 && this.#deps.points.making === null) await this.#sweep();
  }

  /**
   * Reconciles the list of points with the repository, and removes unreferenced pieces. The first change
   * stores `entry`. Throws `point_in_progress`, `target_in_use`, `target_unavailable`.
   */
  async check(entry?: CallEntry): Promise<Checked> {
    await this.#settled();
    const { store, location, isLost, changes } = this.#deps;
    const inFirst = inFirstCommit(entry);
    if (await isLost()) {
      for (const { point_id: id } of await store.listAt(location)) {
        const damaged = store.setDamaged(id, lostPoint(id));
        await inFirst((call) => changes.run(call, (change) => void change.add(damaged)));
      }
    }
    const { removed, swept } = await this.#sweep(inFirst);
    const damaged = (await store.listAt(location)).filter(({ state }) => state === 'damaged');
    return {
      points: (await store.listAt(location)).length,
      damaged_points: damaged.map(({ point_id: id }) => id),
      removed_points: removed,
      removed_pieces: swept.removedPieces,
      freed_bytes: swept.freedBytes,
      unfinished_files: swept.unfinished,
      blocked_by: [...swept.unreadable],
    };
  }

  /**
   * Files that Cloudlet would remove if its credentials allowed it: those of deleted points past
   * their grace period, and pieces that no other point references. They must be removed before the
   * next point is created, which may reference them again. Throws `point_in_progress`,
   * `target_unavailable`, `data_corrupted`.
   */
  async removable(): Promise<Removable> {
    await this.#settled();
    const { store, location, find, removal, lease } = this.#deps;
    const repository = await find();
    if (repository === undefined || removal() !== 'denied') return { files: [], more: false };
    const files: string[] = [];
    const due = (await store.listDue()).filter(({ target }) => target === location);
    for (const { point_id: id } of due) files.push(...(await repository.filesOf(id)));
    files.push(...(await lease.superseded()));
    const without = new Set(due.map(({ point_id: id }) => id));
    return this.#deps.sweeping.run(new AbortController().signal, async () => {
      for await (const piece of unreferencedPieces(repository, without)) {
        if (files.length >= MOST_FILES) return { files, more: true };
        files.push(pieceFile(piece));
      }
      return { files, more: false };
    });
  }

  /** Resolves when the target is not in use. Throws `point_in_progress`. */
  async #settled(): Promise<void> {
    await this.#deps.points.settled();
    const { making } = this.#deps.points;
    if (making !== null) throw inProgress(making, 'A recovery point');
    await this.abortSweep();
  }

  #present(row: PointRow): Point {
    return presentPoint(row, { removal: this.#deps.removal() });
  }

  /** Aborts a sweep, which restarts later, so that a point can be created. */
  async abortSweep(): Promise<void> {
    this.#sweeping?.cancel.abort(
      new AppError('point_in_progress', 'A recovery point is being created', { hint: 'Wait until it ends' }),
    );
    await this.#sweeping?.ended.catch(() => {});
  }

  /** Removes unreferenced pieces under a lease that is already held. */
  async sweepWith(holding: Holding): Promise<void> {
    const repository = await this.#deps.repository();
    const { signal } = holding;
    await this.#deps.sweeping.run(signal, () => sweep({ repository, holding, signal }));
  }

  #sweepSoon(): void {
    if (this.#sweeping !== undefined || this.#deps.points.making !== null) return;
    void this.#sweep().catch((error: unknown) => this.#deps.onError('', error));
  }

  #sweep(inFirst = inFirstCommit(undefined)): Promise<{ removed: string[]; swept: Swept }> {
    const cancel = new AbortController();
    const how = { cancel: cancel.signal, inFirst };
    const ended = this.#write((repository, holding) => this.#sweepNow(repository, holding, how));
    const sweeping = { cancel, ended };
    this.#sweeping = sweeping;
    const forget = () => {
      if (this.#sweeping === sweeping) this.#sweeping = undefined;
    };
    ended.then(forget, forget);
    return ended;
  }

  async #sweepNow(repository: Repository, holding: Holding, { cancel, inFirst }: Sweep) {
    const { store, changes, location } = this.#deps;
    const signal = AbortSignal.any([cancel, holding.signal]);
    await reconcile({ ...this.#deps, repository, making: null, inFirst });
    const due = (await store.listDue()).filter(({ target }) => target === location);
    await holding.assertHeld();
    const removed = await forget(
      repository,
      due.map(({ point_id: id }) => id),
    );
    const swept = await this.#deps.sweeping.run(signal, () => sweep({ repository, holding, signal }));
    const add = (change: Change) => {
      for (const id of swept.incomplete) {
        const reason = 'Pieces are missing in the target; verify the point to list them';
        change.add(store.setDamaged(id, { reason, damage: [] }));
      }
      if (swept.unreadable.length > 0) return;
      for (const row of due) if (removed.includes(row.point_id)) change.add(store.remove(row));
    };
    await inFirst((call) => changes.run(call, add));
    return { removed, swept };
  }

  async #write<T>(work: (repository: Repository, holding: Holding) => Promise<T>): Promise<T> {
    const repository = await this.#deps.repository();
    return this.#deps.lease.during((holding) => work(repository, holding));
  }
}

interface Sweep {
  readonly cancel: AbortSignal;
  readonly inFirst: InFirst;
}

/** Ids of the points that are gone: removed now, or earlier by the operator of the target. */
async function forget(repository: Repository, pointIds: readonly string[]): Promise<string[]> {
  try {
    await repository.forget(pointIds);
    return [...pointIds];
  } catch (error) {
    if (!(error instanceof NotRemovable)) throw error;
    const there = await repository.points();
    return pointIds.filter((id) => !there.includes(id));
  }
}
