/**
 * The alarms raised by points and their schedule; each ends as soon as its cause is gone. Reports
 * alarms to administrators' webhooks.
 */
import { BACKGROUND, type Changes } from '../../metadata/change.ts';
import type { Alarm } from '../../platform/alarms.ts';
import { formatTime } from '../../platform/clock.ts';
import { plural } from '../../platform/plural.ts';
import type { LogReport } from '../logs/log-verification.ts';
import type { Gap } from '../points/manifest.ts';
import type { PointEvents } from '../points/point-view.ts';
import type { RecoveryStore } from '../store.ts';
import type { RecoverySummary } from '../summary-store.ts';
import { DAY_MS, HOUR_MS, overdueMs } from './schedule.ts';
import type { Planned } from './scheduler.ts';

export interface RecoveryAlarm {
  readonly code: string;
  readonly detail: string;
  readonly fix: string;
}

/** Every code that alarmsOf() can return. */
export const POINT_ALARMS = [
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

export function alarmsOf(
  summary: RecoverySummary,
  planned: Planned,
  { now, drillMs, logs }: Circumstances,
): RecoveryAlarm[] {
  const alarms: RecoveryAlarm[] = [];
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
