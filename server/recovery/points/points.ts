/**
 * Recovery points: each restores the whole cloud on an empty machine (decisions/0021).
 *
 * The metadata snapshot is taken while a hold stops the sweeper: every blob of the snapshot was stored before
 * and is kept until it is copied. Writes continue. The manifest is written last, so a point is complete or
 * does not exist.
 */
import { createHash } from 'node:crypto';
import {
  BACKGROUND,
  type CallEntry,
  type Change,
  type Changes,
  inFirstCommit,
  type Recorder,
} from '../../metadata/change.ts';
import { Listed } from '../../metadata/list.ts';
import { type Clock, formatTime } from '../../platform/clock.ts';
import { AppError, isAppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Holding, Lease } from '../repository/lease.ts';
import { lockPieces } from '../repository/piece-locks.ts';
import type { Repository } from '../repository/repository.ts';
import { tryPointKeys } from '../repository/sealed-values.ts';
import type { Point } from '../schema.ts';
import { newRow, type PointRow, RecoveryStore } from '../store.ts';
import { Components } from './components.ts';
import { type Component, type Gap, type Manifest, newManifest, readManifest } from './manifest.ts';
import { inProgress, invalidState, reasonOf, tooLarge } from './point-refusals.ts';
import { type PointEvents, type PointWork, presentPoint } from './point-view.ts';
import type { Snapshot, Snapshots, Source } from './sources.ts';

export interface PointsDeps {
  readonly store: RecoveryStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly snapshots: Snapshots;
  readonly sources: readonly Source[];
  /** Opens the repository, or creates it. Throws `target_unavailable`. */
  readonly repository: () => Promise<Repository>;
  readonly lease: Lease;
  readonly news: PointEvents;
  /** Name of this cloud's journal. */
  readonly cloud: () => Promise<string>;
  /** Stops other work that writes to the repository. */
  readonly abortSweep: () => Promise<void>;
  /** Removes pieces that no point references. */
  readonly sweep: (holding: Holding) => Promise<unknown>;
  /** Other running work on the point. */
  readonly workOn: (pointId: string) => PointWork;
  /** Path of the target, for people. */
  readonly location: string;
  readonly version: string;
  /** Read limit. */
  readonly bytesPerSecond: number;
  readonly onError: (pointId: string, error: unknown) => void;
  /** Called when a point is complete or has failed. */
  readonly onEnd: () => void;
}

const RENEW_MS = 60_000;
/** Page size of lists. */
const PAGE = 1000;

interface NewPointOptions {
  /** When it was due, ms; null: made by hand. */
  readonly scheduledAt?: number | null;
  /** Fails with `out_of_space` if more new bytes than this must be stored in the target. */
  readonly storesAtMost?: number | undefined;
}

interface Materials {
  readonly snapshot: Snapshot;
  readonly repository: Repository;
  readonly holding: Holding;
  readonly storesAtMost?: number | undefined;
}

interface Progress {
  current: PointRow;
  /** The result is stored; only the clean-up is left. */
  isOver: boolean;
  /** The entry of the call that cancels it. */
  entry?: CallEntry | undefined;
}

interface Making {
  readonly progress: Progress;
  readonly cancel: AbortController;
  readonly ended: Promise<void>;
}

export class Points {
  readonly #deps: PointsDeps;
  #making: Making | undefined;
  /** Between the check and the first commit of a creation. */
  #isBeginning = false;
  #recovered: Promise<void> = Promise.resolve();

  constructor(deps: PointsDeps) {
    this.#deps = deps;
  }

  /** Call when Cloudlet starts: fails the interrupted point. */
  recover(): Promise<void> {
    const { changes, store, snapshots } = this.#deps;
    const recovered = async () => {
      await snapshots.sweep();
      await changes.run(BACKGROUND, (change) => {
        change.add(store.failUnfinished('Cloudlet ended while the point was being created'));
        change.add(store.endHolds());
      });
    };
    this.#recovered = recovered();
    return this.#recovered;
  }

  /** Id of the point being created, empty before it has one; null: none. */
  get making(): string | null {
    return this.#isMaking ? (this.#making?.progress.current.point_id ?? '') : null;
  }

  /** Waits for the clean-up of an ended point, so that it does not block the next one. */
  async settled(): Promise<void> {
    if (this.#making?.progress.isOver === true) await this.#making.ended;
  }

  /** True while a point is being created: its blobs must not be removed, and keys not retired. */
  get #isMaking(): boolean {
    return this.#making !== undefined || this.#isBeginning;
  }

  /** Runs `work` while no point is being created. Throws `point_in_progress`. */
  async apart<T>(work: () => Promise<T>): Promise<T> {
    await this.settled();
    if (this.#isMaking) throw inProgress(this.making);
    this.#isBeginning = true;
    try {
      return await work();
    } finally {
      this.#isBeginning = false;
    }
  }

  /**
   * Resolves when the snapshot is taken; copying continues. Throws `point_in_progress`, `target_in_use`,
   * `target_unavailable`.
   */
  async create(call: Recorder, { scheduledAt = null, storesAtMost }: NewPointOptions = {}): Promise<Point> {
    const { clock, changes, store, snapshots, location, lease, abortSweep, news } = this.#deps;
    await this.settled();
    if (this.#isMaking) throw inProgress(this.making);
    this.#isBeginning = true;
    let holding: Holding | undefined;
    try {
      await this.#recovered;
      await abortSweep();
      const repository = await this.#deps.repository();
      repository.prepare();
      holding = await lease.hold();
      const pointId = newId('drp', clock);
      const now = clock.now();
      await changes.run(BACKGROUND, (change) => {
        change.add(store.hold(pointId, now));
      });
      const snapshot = await snapshots.take();
      const contents = JSON.stringify(await new RecoveryStore(snapshot.reads).contents());
      const facts = { created_at: now, scheduled_at: scheduledAt, contents };
      const cut = { point_id: pointId, target: location, ...facts };
      const point = await changes.run(call, async (change) => {
        change.add(store.insert(cut));
        change.addAll(await news.of('recovery_point.created', newRow(cut)));
        return presentPoint(newRow(cut));
      });
      const row = await store.find(pointId);
      if (row === undefined) throw new Error('a new point has no row');
      this.#begin(row, { snapshot, repository, holding, storesAtMost });
      return point;
    } catch (error) {
      if (!this.#making) await this.#endHolds();
      await holding?.release();
      throw error;
    } finally {
      this.#isBeginning = false;
    }
  }

  /** `latest`: see RecoveryStore.latest(). Throws `point_not_found`. */
  async find(pointId: string): Promise<Point> {
    return this.#present(await this.named(pointId));
  }

  /** The row of that id, or of `latest`. Throws `point_not_found`. */
  async named(pointId: string): Promise<PointRow> {
    if (pointId !== 'latest') return this.row(pointId);
    const row = await this.#deps.store.latest(this.#deps.location);
    if (row !== undefined) return row;
    throw new AppError('point_not_found', 'There is no complete recovery point');
  }

  async *list(after: number, limit: number): AsyncGenerator<Listed<PointRow, Point>> {
    for (let [left, from] = [limit, after]; left > 0; ) {
      const step = Math.min(left, PAGE);
      const rows = await this.#deps.store.list(from, step);
      for (const row of rows) yield new Listed(row, this.#present(row));
      if (rows.length < step) return;
      left -= rows.length;
      from = rows.at(-1)?.id ?? from;
    }
  }

  /** Resolves when the point is no longer being created, or after `ms`. */
  async wait(pointId: string, ms: number): Promise<Point> {
    const making = this.#making;
    if (making?.progress.current.point_id === pointId) {
      const late = new Promise((resolve) => setTimeout(resolve, ms).unref());
      await Promise.race([making.ended, late]);
    }
    return this.find(pointId);
  }

  /** Throws `point_not_found`, and `point_invalid_state` when it is not being created. */
  async cancel(pointId: string, entry?: CallEntry): Promise<Point> {
    const row = await this.row(pointId);
    const making = this.#making;
    if (making?.progress.current.point_id !== pointId) throw invalidState(row, 'is not being created');
    making.progress.entry = entry;
    making.cancel.abort();
    await making.ended;
    return this.find(pointId);
  }

  /** Cancels the creation in progress. */
  async close(): Promise<void> {
    this.#making?.cancel.abort();
    await this.#making?.ended;
  }

  #begin(row: PointRow, materials: Materials): void {
    const cancel = new AbortController();
    const making: Progress = { current: row, isOver: false };
    const { snapshot, holding } = materials;
    const signal = AbortSignal.any([cancel.signal, holding.signal]);
    const renewing = setInterval(() => this.#renewHold(row.point_id), RENEW_MS).unref();
    const ended = this.#make(making, { ...materials, signal })
      .catch(async (error: unknown) => {
        await this.#fail(making, { error, isCancelled: cancel.signal.aborted });
        // Otherwise, the stored pieces would never be freed.
        const isFull = isAppError(error) && error.code === 'out_of_space';
        if (isFull) await this.#deps.sweep(holding);
      })
      .catch((error: unknown) => this.#deps.onError(row.point_id, error))
      .finally(async () => {
        clearInterval(renewing);
        await snapshot.remove().catch((error) => this.#deps.onError(row.point_id, error));
        await this.#endHolds();
        await holding.release();
        this.#making = undefined;
        this.#deps.onEnd();
      });
    this.#making = { cancel, ended, progress: making };
  }

  async #make(making: Progress, how: Materials & { readonly signal: AbortSignal }): Promise<void> {
    const { store, clock, sources, bytesPerSecond } = this.#deps;
    const { snapshot, repository, holding, signal, storesAtMost = Number.POSITIVE_INFINITY } = how;
    const estimate = Math.max(1, await new RecoveryStore(snapshot.reads).sumOfBytes());
    const onProgress = (bytes: number, added: number) => {
      const { current } = making;
      const sizeBytes = current.size_bytes + bytes;
      const percent = Math.min(99, Math.round((sizeBytes / estimate) * 1000) / 10);
      const storedBytes = current.stored_bytes + added;
      if (added > 0 && storedBytes > storesAtMost) throw tooLarge(storesAtMost);
      making.current = { ...current, size_bytes: sizeBytes, stored_bytes: storedBytes, percent };
    };
    const gaps: Gap[] = [];
    const onGap = (component: string, error: Error) => {
      gaps.push({ component, reason: error.message });
      this.#deps.onError(making.current.point_id, error);
    };
    const components = new Components({ repository, clock, signal, bytesPerSecond, onProgress, onGap });
    const damaged = await store.damagedFiles(this.#deps.location);
    repository.distrust(new Set(damaged.map((file) => file.slice(file.lastIndexOf('/') + 1))));
    const earlier = await this.#earlier(repository);
    const written: Component[] = [];
    for (const source of sources) {
      const before = earlier?.components.find(({ name }) => name === source.name);
      written.push(await components.write(source, snapshot, before));
    }
    gaps.push(...(await tryPointKeys({ repository, written, reads: snapshot.reads, signal })));
    const row = making.current;
    const locks = { repository, clock, signal, written, earlier, row };
    const locked_until = repository.lockDays === 0 ? undefined : await lockPieces(locks);
    await this.#complete(making, { written, gaps, snapshot, repository, holding, locked_until });
  }

  async #complete(
    making: Progress,
    what: Pick<Manifest, 'gaps' | 'locked_until'> & { readonly written: readonly Component[] } & Materials,
  ): Promise<void> {
    const { clock, changes, store, version, news } = this.#deps;
    const row = making.current;
    const now = clock.now();
    const manifest = newManifest(row, {
      cloud: await this.#deps.cloud(),
      version,
      schema: await new RecoveryStore(what.snapshot.reads).schema(),
      completed_at: formatTime(now),
      locked_until: what.locked_until,
      components: what.written,
      gaps: what.gaps,
    });
    const bytes = Buffer.from(JSON.stringify(manifest));
    const sealed = await what.repository.putManifest(row.point_id, bytes, () => what.holding.assertHeld());
    const complete: PointRow = {
      ...row,
      state: 'complete',
      percent: 100,
      completed_at: now,
      size_bytes: what.written.reduce((sum, { size_bytes }) => sum + size_bytes, 0),
      stored_bytes: row.stored_bytes + sealed.length,
      gaps: JSON.stringify(what.gaps),
      manifest_sha256: createHash('sha256').update(sealed).digest('hex'),
    };
    making.isOver = true;
    await changes.run(BACKGROUND, async (change) => {
      change.add(store.update(complete));
      change.addAll(await news.of('recovery_point.completed', complete));
    });
  }

  /** The newest intact point, so that unchanged files are not read again. */
  async #earlier(repository: Repository): Promise<Manifest | undefined> {
    const row = await this.#deps.store.newestSound(this.#deps.location);
    if (row === undefined) return undefined;
    try {
      const found = await repository.getManifest(row.point_id);
      return found && readManifest(found.bytes);
    } catch {
      // Verification reports the damage; here it only means that everything is read.
      return undefined;
    }
  }

  async #fail(
    making: Progress,
    { error, isCancelled }: { readonly error: unknown; readonly isCancelled: boolean },
  ): Promise<void> {
    const { changes, store, onError, news } = this.#deps;
    const row = making.current;
    if (!isCancelled) onError(row.point_id, error);
    const state = isCancelled ? 'cancelled' : 'failed';
    const reason = isCancelled ? null : reasonOf(error);
    const ended: PointRow = { ...row, state, reason };
    making.isOver = true;
    const end = async (change: Change) => {
      change.add(store.update(ended));
      if (!isCancelled) change.addAll(await news.of('recovery_point.failed', ended));
    };
    await inFirstCommit(making.entry)((call) => changes.run(call, end));
  }

  #renewHold(pointId: string): void {
    const { changes, store, clock, onError } = this.#deps;
    void changes
      .run(BACKGROUND, (change) => void change.add(store.hold(pointId, clock.now())))
      .catch((error) => onError(pointId, error));
  }

  async #endHolds(): Promise<void> {
    const { changes, store } = this.#deps;
    await changes
      .run(BACKGROUND, (change) => void change.add(store.endHolds()))
      .catch((error) => this.#deps.onError('', error));
  }

  /** Includes progress that is not stored. Throws `point_not_found`. */
  async row(pointId: string): Promise<PointRow> {
    const row = await this.#deps.store.find(pointId);
    if (row !== undefined) return this.#current(row);
    throw new AppError('point_not_found', `There is no recovery point ${pointId}`);
  }

  #present(row: PointRow): Point {
    return presentPoint(this.#current(row), this.#deps.workOn(row.point_id));
  }

  #current(row: PointRow): PointRow {
    const making = this.#making?.progress.current;
    return making?.point_id === row.point_id && row.state === 'creating' ? making : row;
  }
}
