/**
 * Checks whether this cloud could be recovered if it were lost now, and warns of the obstacles.
 *
 * A recovery target may hang, such as a network file system whose server is gone. So it is probed at
 * intervals, and callers get the last result.
 */
import { type Clock, formatTime, formatTimeOrNull } from '../platform/clock.ts';
import { plural } from '../platform/plural.ts';
import type { Gap } from './manifest.ts';
import type { RecoveryStore } from './store.ts';
import type { RecoverySummary, RecoverySummaryStore } from './summary-store.ts';

/** Facts about the recovery target. */
export interface TargetFact {
  readonly isOnDataDisk: boolean;
  readonly freeBytes: number;
  /** Id of its repository; null: none yet. */
  readonly repositoryId: string | null;
}

export interface WatchDeps {
  readonly summaries: Pick<RecoverySummaryStore, 'of'>;
  readonly store: Pick<RecoveryStore, 'isKeyTaken'>;
  readonly clock: Clock;
  readonly alarms: { raise(code: string, detail: string, fix: string): void; clear(code: string): void };
  /** Rejects with the reason why points cannot be stored there. */
  readonly probe: () => Promise<TargetFact>;
  readonly location: string;
}

/** Number of gaps named in the alarm. */
const SHOWN = 5;

/** A warning to the operator that is no fault. */
export interface Warning {
  readonly code: string;
  readonly detail: string;
  readonly fix: string;
}

const SILENT_MS = 5000;
const DAY_MS = 86_400_000;
/** Age beyond which the newest point is considered old. */
const OLD_MS = 8 * DAY_MS;

export class RecoveryWatch {
  readonly #deps: WatchDeps;
  #found: TargetFact | undefined;
  #probing: Promise<TargetFact> | undefined;
  /** Last result, for /metrics. */
  #summary: RecoverySummary | undefined;
  #isKeyTaken = false;
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
      // The stores are closed while a check still runs: a stop does not wait for a target that hangs.
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
      alarms.clear('recovery_target_unavailable');
    } catch (error) {
      this.#found = undefined;
      const detail = `The recovery target ${location} is unavailable: ${(error as Error).message}`;
      const fix =
        'Mount it and make it writable for Cloudlet, or set CLOUDLET_RECOVERY_TARGET to another directory';
      alarms.raise('recovery_target_unavailable', detail, fix);
    } finally {
      clearTimeout(timer);
    }
  }

  async read() {
    const { summaries, store, clock, location } = this.#deps;
    const summary = await summaries.of(location);
    const { points, newest_at, verified_at, failed_at, failed_reason: reason } = summary;
    const id = this.#found?.repositoryId ?? null;
    const isKeyTaken = id === null ? null : await store.isKeyTaken(id);
    const ageMs = newest_at === null ? null : Math.max(0, clock.now() - newest_at);
    this.#summary = summary;
    this.#isKeyTaken = isKeyTaken === true;
    return {
      points,
      newest_at: formatTimeOrNull(newest_at),
      newest_age_seconds: ageMs && Math.round(ageMs / 1000),
      verified_at: formatTimeOrNull(verified_at),
      last_failure: failed_at === null ? null : { at: formatTime(failed_at), reason },
      key_taken: isKeyTaken,
      on_data_disk: this.#found?.isOnDataDisk ?? null,
      free_bytes: this.#found?.freeBytes ?? null,
      warnings: warningsOf({ ageMs, isKeyTaken, isOnDataDisk: this.#found?.isOnDataDisk === true }),
    };
  }

  /** Results of the last probe; NaN where unknown. */
  figures() {
    const { newest_at: newestAt = null, points = 0 } = this.#summary ?? {};
    return {
      points,
      ageSeconds: newestAt === null ? Number.NaN : (this.#deps.clock.now() - newestAt) / 1000,
      freeBytes: this.#found?.freeBytes ?? Number.NaN,
      isKeyTaken: this.#isKeyTaken,
    };
  }

  async #reportPoints(): Promise<void> {
    const { alarms } = this.#deps;
    const { last_failure: failure } = await this.read();
    const damaged = this.#summary?.damaged ?? 0;
    if (failure === null) alarms.clear('recovery_point_failed');
    else {
      const detail = `The last recovery point failed: ${failure.reason}`;
      alarms.raise(
        'recovery_point_failed',
        detail,
        'Fix the cause, then create another: cloudlet recovery create',
      );
    }
    const lacks = JSON.parse(this.#summary?.newest_gaps ?? '[]') as readonly Gap[];
    if (lacks.length === 0) alarms.clear('recovery_point_partial');
    else {
      const named = lacks.slice(0, SHOWN).map(({ component }) => component);
      const more = lacks.length > SHOWN ? ` and ${lacks.length - SHOWN} more` : '';
      const detail = `The newest recovery point is missing ${named.join(', ')}${more}`;
      alarms.raise(
        'recovery_point_partial',
        detail,
        'cloudlet recovery get latest shows why; then create another',
      );
    }
    if (damaged === 0) alarms.clear('recovery_points_damaged');
    else {
      const fix = 'Create another point, then delete the damaged ones';
      alarms.raise('recovery_points_damaged', `Recovery points are damaged: ${damaged}`, fix);
    }
  }
}

function warningsOf(of: {
  readonly ageMs: number | null;
  readonly isKeyTaken: boolean | null;
  readonly isOnDataDisk: boolean;
}): Warning[] {
  const { ageMs, isKeyTaken, isOnDataDisk } = of;
  const warnings: Warning[] = [];
  const warn = (code: string, detail: string, fix: string) => warnings.push({ code, detail, fix });
  if (ageMs === null) {
    warn('no_recovery_point', 'There is no recovery point of this cloud', 'cloudlet recovery create');
  } else if (ageMs > OLD_MS) {
    const detail = `The newest recovery point is ${plural(Math.floor(ageMs / DAY_MS), 'day')} old`;
    warn('recovery_point_old', detail, 'cloudlet recovery create');
  }
  if (isKeyTaken === false) {
    const detail =
      'Nobody has confirmed having the recovery key: if this host is lost, its points cannot be restored';
    warn('recovery_key_not_taken', detail, 'cloudlet recovery key');
  }
  if (isOnDataDisk) {
    const detail = 'Recovery points are on the same disk as the data and would be lost with it';
    const fix = 'set CLOUDLET_RECOVERY_TARGET to a directory on another disk, or on NFS';
    warn('recovery_target_on_data_disk', detail, fix);
  }
  return warnings;
}
