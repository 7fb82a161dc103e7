/**
 * Creates recovery points when the schedule says so, and deletes those that no keep rule keeps.
 *
 * The time of the next one is stored. Times that were missed while Cloudlet was off are made up once. If the
 * clock is set back, the next time moves back too, so that no point waits for a time that had already passed.
 */
import { BACKGROUND, type Changes, type Recorder } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { isAppError } from '../../platform/errors.ts';
import type { Points } from '../points/points.ts';
import type { RecoveryStore } from '../store.ts';
import type { Retention } from './retention.ts';
import { assertSchedule, defaultSchedule, type KeepRules, nextAfter, type Schedule } from './schedule.ts';
import { NO_PROGRESS, type Progress, type ScheduleStore } from './schedule-store.ts';

export interface SchedulerDeps {
  readonly store: ScheduleStore;
  readonly rows: Pick<RecoveryStore, 'find' | 'newestSound'>;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly points: Pick<Points, 'create' | 'making'>;
  readonly retention: { apply(...of: Parameters<Retention['apply']>): Promise<unknown> };
  /** Path of the target. */
  readonly location: string;
  /** False: the target is in the data directory, where points are created only on request. */
  readonly isTargetSet: boolean;
  /** Free space of the target, bytes. */
  readonly freeBytes: () => Promise<number>;
  readonly onError: (pointId: string, error: unknown) => void;
}

export interface ScheduleChanges extends Partial<Omit<Schedule, 'keep'>> {
  readonly keep?: Partial<KeepRules>;
}

/** A schedule with its state. */
export interface Planned {
  readonly schedule: Schedule;
  /** True if the default schedule applies. */
  readonly isDefault: boolean;
  readonly progress: Progress;
}

/** From the first start with a target to the first point: time to set another schedule. */
const FIRST_MS = 10 * 60_000;
const RETRY_MS = 60_000;
const MAX_RETRY_MS = 3_600_000;

export class Scheduler {
  readonly #deps: SchedulerDeps;
  #last: Promise<unknown> = Promise.resolve();
  /** Time of the last retention run (uptime clock). */
  #retainedAt = Number.NEGATIVE_INFINITY;
  /** False before start() and after close(): the operator's commands set a schedule, but create no point. */
  #isRunning = false;

  constructor(deps: SchedulerDeps) {
    this.#deps = deps;
  }

  async read(): Promise<Planned> {
    const { store, isTargetSet } = this.#deps;
    const [set, progress] = await Promise.all([store.schedule(), store.progress()]);
    return { schedule: set ?? defaultSchedule(isTargetSet), isDefault: set === undefined, progress };
  }

  /**
   * If there is no point, the first is due immediately. `answer` makes the response, which is also kept under
   * an Idempotency-Key. Throws `invalid_request`.
   */
  async set<T>(call: Recorder, changed: ScheduleChanges, answer: (planned: Planned) => T): Promise<T> {
    const { store, changes, clock, rows, location } = this.#deps;
    const planned = await this.#inTurn(() =>
      changes.run(call, async (change) => {
        const { schedule: before, progress: was } = await this.read();
        const schedule = { ...before, ...changed, keep: { ...before.keep, ...changed.keep } };
        assertSchedule(schedule);
        const hasPoint = (await rows.newestSound(location)) !== undefined;
        const nextAt = hasPoint ? nextAfter(schedule, clock.now()) : clock.now();
        const { lastAt, lastPointId, pointId } = was;
        const progress = { ...NO_PROGRESS, lastAt, lastPointId, pointId, nextAt };
        change.add(store.setSchedule(schedule));
        change.add(store.setProgress(progress));
        return answer({ schedule, isDefault: false, progress });
      }),
    );
    void this.tick().catch((error: unknown) => this.#deps.onError('', error));
    return planned;
  }

  /** Creates the point that is due, or records its end. Call every few seconds, and when a point ends. */
  tick(): Promise<void> {
    return this.#inTurn(async () => {
      if (this.#isRunning) await this.#tick();
    });
  }

  start(): void {
    this.#isRunning = true;
  }

  /** Creates no more points. */
  close(): void {
    this.#isRunning = false;
  }

  async #tick(): Promise<void> {
    const { clock, points } = this.#deps;
    const { schedule, progress } = await this.read();
    if (progress.pointId !== null) {
      await this.#settle(schedule, progress, progress.pointId);
      return;
    }
    if (progress.retentionFailure !== null && clock.uptime() - this.#retainedAt > MAX_RETRY_MS) {
      await this.#retain(schedule, progress);
      return;
    }
    const now = clock.now();
    const next = nextAfter(schedule, now);
    if (next === null) return;
    const nextAt = Math.min(next, progress.nextAt ?? (await this.#firstAt(next)));
    if (nextAt !== progress.nextAt) await this.#write({ ...progress, nextAt });
    if (now < nextAt || points.making !== null) return;
    await this.#begin(schedule, { ...progress, nextAt });
  }

  /** Serializes runs: each reads and writes the progress. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const run = this.#last.then(work);
    this.#last = run.catch(() => {});
    return run;
  }

  async #firstAt(next: number): Promise<number> {
    const { rows, location, clock } = this.#deps;
    return (await rows.newestSound(location)) === undefined ? clock.now() + FIRST_MS : next;
  }

  async #begin(schedule: Schedule, progress: Progress): Promise<void> {
    const { points, isTargetSet, freeBytes } = this.#deps;
    const dueAt = progress.dueAt ?? progress.nextAt;
    try {
      // The data must never run out of space because of its own recovery points.
      const storesAtMost = isTargetSet ? undefined : Math.floor((await freeBytes()) / 2);
      const { point_id: pointId } = await points.create(BACKGROUND, { scheduledAt: dueAt, storesAtMost });
      await this.#write({ ...progress, dueAt, pointId });
    } catch (error) {
      // Another point is being created; the next tick waits for its end.
      if (isAppError(error, 'point_in_progress')) return;
      this.#deps.onError('', error);
      await this.#failed(schedule, { ...progress, dueAt }, reasonOf(error));
    }
  }

  /** Records the outcome of the point. */
  async #settle(schedule: Schedule, progress: Progress, pointId: string): Promise<void> {
    const { rows, clock } = this.#deps;
    const row = await rows.find(pointId);
    if (row?.state === 'creating') return;
    if (row?.state === 'failed') {
      await this.#failed(schedule, progress, row.reason ?? 'the log has the cause');
      return;
    }
    const ended = { ...NO_PROGRESS, nextAt: nextAfter(schedule, clock.now()) };
    // Cancelled or removed on purpose, so it is not retried.
    const isMade = row !== undefined && row.state !== 'cancelled';
    const { lastAt, lastPointId } = progress;
    const last = isMade ? { lastPointId: pointId, lastAt: row.created_at } : { lastPointId, lastAt };
    await this.#write({ ...ended, ...last });
    if (isMade) await this.#retain(schedule, { ...ended, ...last });
  }

  /** Retried with the next point, and hourly until it succeeds. */
  async #retain(schedule: Schedule, progress: Progress): Promise<void> {
    const { retention, clock, onError } = this.#deps;
    this.#retainedAt = clock.uptime();
    let retentionFailure: string | null = null;
    try {
      if (schedule.every !== 'off') await retention.apply(schedule.keep);
    } catch (error) {
      onError('', error);
      retentionFailure = reasonOf(error);
    }
    if (retentionFailure !== progress.retentionFailure) await this.#write({ ...progress, retentionFailure });
  }

  /** Tries again after a minute, then two, four, … up to an hour, or at the next time of the schedule. */
  async #failed(schedule: Schedule, progress: Progress, reason: string): Promise<void> {
    const now = this.#deps.clock.now();
    const failures = progress.failures + 1;
    const retryAt = now + Math.min(MAX_RETRY_MS, RETRY_MS * 2 ** (failures - 1));
    const nextAt = Math.min(retryAt, nextAfter(schedule, now) ?? retryAt);
    const failed = { failures, failedAt: now, failedReason: reason, pointId: null };
    await this.#write({ ...progress, ...failed, nextAt });
  }

  async #write(progress: Progress): Promise<void> {
    const { changes, store } = this.#deps;
    await changes.store([store.setProgress(progress)]);
  }
}

function reasonOf(error: unknown): string {
  return isAppError(error) ? error.message : 'the log has the cause';
}
