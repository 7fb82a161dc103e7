/**
 * Checks whether this cloud could be recovered if it were lost now, and warns of the obstacles.
 *
 * A recovery target may hang, such as a network file system whose server is gone. So it is probed at
 * intervals, and callers get the last result. Alarms are reported to administrators' webhooks as well.
 */
import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import type { Alarm, Alarms } from '../../platform/alarms.ts';
import { type Clock, formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { plural } from '../../platform/plural.ts';
import type { LogReport } from '../logs/log-verification.ts';
import type { Gap } from '../points/manifest.ts';
import type { PointEvents } from '../points/point-view.ts';
import { TargetProblem, type TargetSpace } from '../repository/target.ts';
import type { RecoveryStore } from '../store.ts';
import type { RecoverySummary, RecoverySummaryStore } from '../summary-store.ts';
import { DAY_MS, HOUR_MS, overdueMs } from './schedule.ts';
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

/** For the operator: a warning, which is not a fault, or an alarm. */
interface Notice {
  readonly code: string;
  readonly detail: string;
  readonly fix: string;
}

const SILENT_MS = 5000;
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
}): Notice[] {
  const { ageMs, isKeyTaken, isOnDataDisk, isOff } = of;
  const warnings: Notice[] = [];
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

/** Every code that alarmsOf() can return. */
const POINT_ALARMS = [
  'recovery_point_failed',
  'recovery_schedule_failed',
  'recovery_retention_failed',
  'recovery_point_overdue',
  'recovery_drill_overdue',
  'recovery_point_partial',
  'recovery_points_damaged',
  'recovery_logs_damaged',
] as const;
type Code = (typeof POINT_ALARMS)[number];

/** Number of gaps named in the alarm. */
const SHOWN = 5;

/** Grace period of scheduled drills. */
const DRILL_GRACE_MS = DAY_MS;

/** Facts besides the points and the schedule. */
interface Circumstances {
  /** ms. */
  readonly now: number;
  /** Interval of scheduled drills; 0: none. */
  readonly drillMs: number;
  /** The last verification of archived logs; null: none yet. */
  readonly logs: LogReport | null;
}

/** The alarms raised by points and their schedule; each ends as soon as its cause is gone. */
function alarmsOf(
  summary: RecoverySummary,
  planned: Planned,
  { now, drillMs, logs }: Circumstances,
): Notice[] {
  const alarms: Notice[] = [];
  const add = (code: Code, detail: string, fix: string) => alarms.push({ code, detail, fix });
  const { failures, failedReason, nextAt, retentionFailure } = planned.progress;
  if (failures > 0) {
    const times = failures === 1 ? '' : ` ${failures} times`;
    const next = nextAt === null ? '' : `. The next attempt is at ${formatTime(nextAt)} UTC`;
    const detail = `The scheduled recovery point failed${times}: ${failedReason}${next}`;
    add('recovery_schedule_failed', detail, 'Fix the cause; the schedule retries automatically');
  } else if (summary.failed_at !== null) {
    const detail = `The last recovery point failed: ${summary.failed_reason}`;
    add('recovery_point_failed', detail, 'Fix the cause, then create another: cloudlet recovery create');
  }
  if (retentionFailure !== null) {
    const detail = `Recovery points that no keep rule keeps could not be deleted: ${retentionFailure}`;
    add('recovery_retention_failed', detail, 'Fix the cause; Cloudlet retries automatically');
  }
  const late = summary.latest_at === null ? 0 : now - summary.latest_at;
  if (late > overdueMs(planned.schedule)) {
    const detail =
      `The newest usable recovery point is ${sayAge(late)} old, ` +
      `but the schedule is ${planned.schedule.every}`;
    add('recovery_point_overdue', detail, 'cloudlet recovery schedule shows the reason; then create one');
  }
  const drillLateMs = drillMs === 0 ? 0 : now - drillDueAt(summary, drillMs);
  if (drillLateMs > DRILL_GRACE_MS) {
    const detail =
      summary.drilled_at === null
        ? 'No recovery point has passed a restore drill yet'
        : `No recovery point has passed a restore drill for ${sayAge(now - summary.drilled_at)}`;
    add('recovery_drill_overdue', detail, 'cloudlet recovery drill latest shows why');
  }
  const lacks = JSON.parse(summary.newest_gaps ?? '[]') as readonly Gap[];
  if (lacks.length > 0) {
    const named = lacks.slice(0, SHOWN).map(({ component }) => component);
    const more = lacks.length > SHOWN ? ` and ${lacks.length - SHOWN} more` : '';
    const detail = `The newest recovery point is missing ${named.join(', ')}${more}`;
    const fix = `cloudlet recovery get ${summary.newest_id ?? 'latest'} shows why; then create another`;
    add('recovery_point_partial', detail, fix);
  }
  if (summary.damaged > 0) {
    const fix = 'Create another point, then delete the damaged ones';
    add('recovery_points_damaged', `Recovery points are damaged: ${summary.damaged}`, fix);
  }
  if (logs !== null && logs.damagedFiles > 0) {
    const files = `${plural(logs.damagedFiles, 'file')} of the archived logs of database servers`;
    const are = logs.damagedFiles === 1 ? 'is' : 'are';
    const detail = `${files} ${are} missing or damaged: some moments of databases cannot be restored`;
    const fix =
      'cloudlet recovery verify latest lists the files. A new base copy of each server is made automatically; the alarm ends ' +
      'once the damaged log is too old to be kept';
    add('recovery_logs_damaged', detail, fix);
  }
  return alarms;
}

/** The first drill is due within an hour of the first point. Without points: never. */
function drillDueAt({ drilled_at, oldest_at }: RecoverySummary, drillMs: number): number {
  if (oldest_at === null) return Number.POSITIVE_INFINITY;
  return drilled_at === null ? oldest_at : drilled_at + drillMs;
}

function sayAge(ms: number): string {
  const [size, unit] = ms < 2 * DAY_MS ? ([HOUR_MS, 'hour'] as const) : ([DAY_MS, 'day'] as const);
  return plural(Math.floor(ms / size), unit);
}

export interface AlarmNewsDeps {
  readonly store: Pick<RecoveryStore, 'visibleAlarms' | 'setVisibleAlarms'>;
  readonly changes: Changes;
  readonly news: Pick<PointEvents, 'ofAlarm'>;
}

const IS_OURS = /^recovery_/;

/** Notifies administrators' webhooks when a recovery alarm appears or ends. */
export class AlarmNews {
  readonly #deps: AlarmNewsDeps;
  #last: Promise<unknown> = Promise.resolve();

  constructor(deps: AlarmNewsDeps) {
    this.#deps = deps;
  }

  /** `alarms`: all current ones. Reported ones are stored, so that a restart repeats nothing. */
  tell(alarms: readonly Alarm[]): Promise<void> {
    const telling = this.#last.then(() => this.#tell(alarms.filter(({ code }) => IS_OURS.test(code))));
    this.#last = telling.catch(() => {});
    return telling;
  }

  async #tell(alarms: readonly Alarm[]): Promise<void> {
    const { store, changes, news } = this.#deps;
    const told = await store.visibleAlarms();
    const raised = alarms.filter(({ code }) => !told.includes(code));
    const codes = alarms.map(({ code }) => code);
    const cleared = told.filter((code) => !codes.includes(code));
    if (raised.length + cleared.length === 0) return;
    await changes.run(BACKGROUND, async (change) => {
      change.add(store.setVisibleAlarms(codes));
      for (const { code, detail, fix } of raised) {
        change.addAll(await news.ofAlarm('recovery.alarm_raised', { code, detail, fix }));
      }
      for (const code of cleared) change.addAll(await news.ofAlarm('recovery.alarm_cleared', { code }));
    });
  }
}
