/** Makes the schedule of recovery points. */
import type { Config } from '../config/config.ts';
import { inspectDirectory } from '../drivers/recovery-directory/directory-target.ts';
import type { Changes } from '../metadata/change.ts';
import type { Metadata } from '../metadata/metadata.ts';
import type { Clock } from '../platform/clock.ts';
import type { Points } from '../recovery/points/points.ts';
import type { Removals } from '../recovery/points/removals.ts';
import type { Lease } from '../recovery/repository/lease.ts';
import { Retention } from '../recovery/schedule/retention.ts';
import { ScheduleStore } from '../recovery/schedule/schedule-store.ts';
import { Scheduler } from '../recovery/schedule/scheduler.ts';
import type { RecoveryStore } from '../recovery/store.ts';

export interface ScheduleParts {
  readonly config: Pick<Config, 'recoveryTarget' | 'dataDir'>;
  readonly metadata: Metadata;
  readonly store: RecoveryStore;
  readonly changes: Changes;
  readonly clock: Clock;
  readonly points: Points;
  readonly removals: Removals;
  readonly lease: Lease;
  readonly target: { readonly location: string };
  readonly onError: (pointId: string, error: unknown) => void;
}

const TICK_MS = 5000;

export function buildSchedule({
  config,
  metadata,
  target: { location },
  store: rows,
  ...parts
}: ScheduleParts) {
  const isTargetSet = config.recoveryTarget !== '';
  const retention = new Retention({ ...parts, store: rows, location });
  const store = new ScheduleStore(metadata);
  const freeBytes = async () => (await inspectDirectory(location, config.dataDir)).freeBytes;
  const scheduler = new Scheduler({ ...parts, store, rows, retention, location, isTargetSet, freeBytes });
  return { scheduler, retention, location, isTargetSet, everyMs: TICK_MS };
}
