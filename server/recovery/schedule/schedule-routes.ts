/** The schedule of recovery points and its keep rules over REST, for administrators. */
import { defineRoute, type Route } from '../../http/route.ts';
import { formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { Type } from '../../platform/json/json-schema.ts';
import { shownState } from '../points/point-view.ts';
import { OptionalRules, RecoverySchedule, RetentionPreview, ScheduleChange } from '../schema.ts';
import type { PointRow } from '../store.ts';
import type { Retention, RetentionPlan } from './retention.ts';
import type { KeepRules } from './schedule.ts';
import type { Planned, Scheduler } from './scheduler.ts';

export interface ScheduleRoutesDeps {
  readonly scheduler: Scheduler;
  readonly retention: Retention;
  /** Path of the target. */
  readonly location: string;
  readonly isTargetSet: boolean;
}

const SCHEDULE = '/api/disaster-recovery/schedule';
const common = { tag: 'recovery', permission: 'admin' } as const;

export function scheduleRoutes({ scheduler, retention, location, isTargetSet }: ScheduleRoutesDeps): Route[] {
  const present = ({ schedule, isDefault, progress }: Planned): RecoverySchedule => ({
    ...schedule,
    is_default: isDefault,
    next_at: schedule.every === 'off' ? null : formatTimeOrNull(progress.nextAt),
    making_point_id: progress.pointId,
    last_point_id: progress.lastPointId,
    last_at: formatTimeOrNull(progress.lastAt),
    failures: progress.failures,
    failed_at: formatTimeOrNull(progress.failedAt),
    failed_reason: progress.failedReason,
    target: location,
    is_default_target: !isTargetSet,
  });
  return [
    defineRoute({
      ...common,
      method: 'GET',
      permission: 'admin:read',
      path: SCHEDULE,
      name: 'getRecoverySchedule',
      livesOn: 'host-or-any',
      summary: 'Read the schedule of recovery points',
      responses: { 200: RecoverySchedule },
      handler: async () => present(await scheduler.read()),
    }),
    defineRoute({
      ...common,
      method: 'PATCH',
      path: SCHEDULE,
      name: 'updateRecoverySchedule',
      livesOn: 'host',
      summary: 'Change the schedule of recovery points',
      description:
        'Omitted members do not change. If there is no point, the first one is created immediately. After each scheduled ' +
        'point, the scheduled points that no keep rule keeps are deleted, and can be undeleted; points created by hand stay.',
      body: ScheduleChange,
      responses: { 200: RecoverySchedule },
      handler: (call) => scheduler.set(call, call.body, present),
    }),
    defineRoute({
      ...common,
      method: 'GET',
      permission: 'admin:read',
      path: '/api/disaster-recovery/retention',
      name: 'previewRecoveryRetention',
      livesOn: 'host',
      summary: 'Preview which recovery points would be kept and deleted',
      description: 'Uses the rules of the schedule, or those of the query. No point is deleted.',
      query: Type.Object(OptionalRules),
      responses: { 200: RetentionPreview },
      handler: async ({ query }) => {
        const keep = { ...(await scheduler.read()).schedule.keep, ...query };
        return presentPlan(keep, await retention.plan(keep));
      },
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/disaster-recovery/retention',
      name: 'applyRecoveryRetention',
      livesOn: 'host',
      summary: 'Delete the recovery points that no rule of the schedule keeps',
      description:
        'Deletes the points that would be deleted after the next scheduled recovery point. Responds with the points kept and deleted; deleted points can be undeleted.',
      responses: { 200: RetentionPreview },
      errors: ['target_in_use', 'target_unavailable'],
      handler: async ({ entry }) => {
        const { keep } = (await scheduler.read()).schedule;
        return presentPlan(keep, await retention.apply(keep, entry));
      },
    }),
  ];
}

function presentPlan(keep: KeepRules, { stays, goes }: RetentionPlan): RetentionPreview {
  const point = (row: PointRow) => {
    return { point_id: row.point_id, state: shownState(row), created_at: formatTime(row.created_at) };
  };
  return {
    keep,
    stays: stays.map(({ row, reasons }) => ({ ...point(row), reasons: [...reasons] })),
    goes: goes.map(point),
  };
}
