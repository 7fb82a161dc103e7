/**
 * Checks whether this cloud could be recovered if it were lost now, and warns of the obstacles.
 *
 * A recovery target may hang, such as a network file system whose server is gone. So it is probed at
 * intervals, and callers get the last result.
 */
import type { Alarm, Alarms } from '../../platform/alarms.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { plural } from '../../platform/plural.ts';
import type { Gap } from '../points/manifest.ts';
import { TargetProblem, type TargetSpace } from '../repository/target.ts';
import type { RecoveryStore } from '../store.ts';
import type { RecoverySummary, RecoverySummaryStore } from '../summary-store.ts';
import { alarmsOf, POINT_ALARMS } from './recovery-alarms.ts';
import type { Planned } from './scheduler.ts';

/** Facts about the recovery target. */
export interface TargetFact extends TargetSpace {
  /** Id of its repository; null: none yet. */
  readonly repositoryId: string | null;
}

export interface WatchDeps {
  readonly summaries: Pick<RecoverySummaryStore, 'of' | 'logs'>;
  readonly store: Pick<RecoveryStore, 'isKeyTaken'>;
  readonly clock: Clock;
  readonly alarms: Pick<Alarms, 'raise' | 'clear' | 'list'>;
  readonly planned: () => Promise<Planned>;
  /** Interval of scheduled drills, ms; 0: none. */
  readonly drillMs: number;
  /** Notifies webhooks of alarms that appeared or ended. */
  readonly tell: (alarms: readonly Alarm[]) => Promise<void>;
  /** Rejects with the reason why points cannot be stored there; a TargetProblem if the fix is known. */
  readonly probe: () => Promise<TargetFact>;
  readonly location: string;
}

/** A warning for the operator that is not a fault. */
export interface Warning {
  readonly code: string;
  readonly detail: string;
  readonly fix: string;
}

const SILENT_MS = 5000;
const DAY_MS = 86_400_000;
/** Age at which the newest point counts as old. */
const OLD_MS = 8 * DAY_MS;

export class RecoveryWatch {
  readonly #deps: WatchDeps;
  #found: TargetFact | undefined;
  #probing: Promise<TargetFact> | undefined;
  /** Last result, for /metrics. */
  #summary: RecoverySummary | undefined;
  #isKeyTaken: boolean | null = null;
  /** null: not probed yet. */
  #isTargetUp: boolean | null = null;
  #isClosed = false;

  constructor(deps: WatchDeps) {
    this.#deps = deps;
  }

  /** Probes the target, with a timeout. One probe at a time, because a hanging one occupies a thread. */
  async check(): Promise<void> {
    if (this.#isClosed) return;
    try {
      await this.#probe();
      await this.#reportPoints();
    } catch (error) {
      // The stores may be closed while a check still runs: a shutdown does not wait for a target
      // that hangs.
      if (!this.#isClosed) throw error;
    }
  }

  close(): void {
    this.#isClosed = true;
  }

  async #probe(): Promise<void> {
    const { alarms, location } = this.#deps;
    this.#probing ??= this.#deps.probe().finally(() => {
      this.#probing = undefined;
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      const silence = new Error(`no response for ${SILENT_MS / 1000} seconds`);
      timer = setTimeout(() => reject(silence), SILENT_MS).unref();
    });
    try {
      this.#found = await Promise.race([this.#probing, late]);
      this.#isTargetUp = true;
      alarms.clear('recovery_target_unavailable');
    } catch (error) {
      this.#found = undefined;
      this.#isTargetUp = false;
      const detail = `The recovery target ${location} is unavailable: ${(error as Error).message}`;
      const fix =
        error instanceof TargetProblem
          ? error.fix
          : 'Mount it and make it writable for Cloudlet, or set CLOUDLET_RECOVERY_TARGET to another directory';
      alarms.raise('recovery_target_unavailable', detail, fix);
    } finally {
      clearTimeout(timer);
    }
  }

  async read() {
    const { store, clock } = this.#deps;
    const { summary, planned } = await this.#look();
    const { points, newest_at, verified_at, failed_at, failed_reason: reason } = summary;
    const id = this.#found?.repositoryId ?? null;
    const isKeyTaken = id === null ? null : await store.isKeyTaken(id);
    const ageMs = newest_at === null ? null : Math.max(0, clock.now() - newest_at);
    this.#isKeyTaken = isKeyTaken;
    return {
      points,
      newest_at: formatTimeOrNull(newest_at),
      newest_age_seconds: ageMs && Math.round(ageMs / 1000),
      latest: latestOf(summary, clock.now()),
      verified_at: formatTimeOrNull(verified_at),
      drilled_at: formatTimeOrNull(summary.drilled_at),
      schedule: presentPlan(planned),
      last_failure: failed_at === null ? null : { at: formatTime(failed_at), reason },
      key_taken: isKeyTaken,
      on_data_disk: this.#found?.isOnDataDisk ?? null,
      free_bytes: this.#found?.freeBytes ?? null,
      warnings: warningsOf({
        ageMs,
        isKeyTaken,
        isOnDataDisk: this.#found?.isOnDataDisk === true,
        isOff: planned.schedule.every === 'off',
      }),
    };
  }

  /** Results of the last probe; NaN where unknown. */
  figures() {
    const { newest_at: newestAt = null, latest_at: latestAt = null, points = 0 } = this.#summary ?? {};
    const { drilled_at: drilledAt = null } = this.#summary ?? {};
    const ageOf = (at: number | null) => (at === null ? Number.NaN : (this.#deps.clock.now() - at) / 1000);
    return {
      points,
      ageSeconds: ageOf(newestAt),
      latestAgeSeconds: ageOf(latestAt),
      drillAgeSeconds: ageOf(drilledAt),
      isTargetUp: this.#isTargetUp,
      freeBytes: this.#found?.freeBytes ?? Number.NaN,
      isKeyTaken: this.#isKeyTaken,
    };
  }

  async #reportPoints(): Promise<void> {
    const { alarms, clock, drillMs } = this.#deps;
    const { summary, planned, logs } = await this.#look();
    const raised = alarmsOf(summary, planned, { now: clock.now(), drillMs, logs });
    for (const code of POINT_ALARMS) if (!raised.some((one) => one.code === code)) alarms.clear(code);
    for (const { code, detail, fix } of raised) alarms.raise(code, detail, fix);
    await this.#deps.tell(alarms.list());
  }

  async #look() {
    const { summaries, planned, location } = this.#deps;
    this.#summary = await summaries.of(location);
    return { summary: this.#summary, planned: await planned(), logs: await summaries.logs() };
  }
}

function latestOf({ latest_id: id, latest_at: at, latest_gaps: gaps }: RecoverySummary, now: number) {
  if (id === null || at === null) return null;
  const lacks = JSON.parse(gaps ?? '[]') as readonly Gap[];
  const ageSeconds = Math.round(Math.max(0, now - at) / 1000);
  return { point_id: id, created_at: formatTime(at), age_seconds: ageSeconds, gaps: lacks.length };
}

function presentPlan({ schedule: { every }, progress }: Planned) {
  const nextAt = every === 'off' ? null : progress.nextAt;
  return { every, next_at: formatTimeOrNull(nextAt), failures: progress.failures };
}

function warningsOf(of: {
  readonly ageMs: number | null;
  readonly isKeyTaken: boolean | null;
  readonly isOnDataDisk: boolean;
  readonly isOff: boolean;
}): Warning[] {
  const { ageMs, isKeyTaken, isOnDataDisk, isOff } = of;
  const warnings: Warning[] = [];
  const warn = (code: string, detail: string, fix: string) => warnings.push({ code, detail, fix });
  if (ageMs === null) {
    warn('no_recovery_point', 'There is no recovery point of this cloud', 'cloudlet recovery create');
  } else if (ageMs > OLD_MS) {
    const detail = `The newest recovery point is ${plural(Math.floor(ageMs / DAY_MS), 'day')} old`;
    warn('recovery_point_old', detail, 'cloudlet recovery create');
  }
  if (isOff) {
    const detail = 'No recovery points are created by a schedule';
    warn('recovery_schedule_off', detail, 'cloudlet recovery schedule set daily');
  }
  if (isKeyTaken === false) {
    const detail =
      'No administrator has confirmed the recovery key: if this host is lost, its points cannot be restored';
    warn('recovery_key_not_taken', detail, 'cloudlet recovery key');
  }
  if (isOnDataDisk) {
    const detail = 'Recovery points are on the same disk as the data and would be lost with it';
    const fix =
      'set CLOUDLET_RECOVERY_TARGET to a directory on another disk, on NFS, or to a bucket of an S3';
    warn('recovery_target_on_data_disk', detail, fix);
  }
  return warnings;
}
