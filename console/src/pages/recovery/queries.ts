/** Queries of the recovery page. Keys begin with `recovery`. */
import { queryOptions } from '@tanstack/react-query';
import type { RecoveryPoint, RecoverySchedule } from '../../../../sdk/index.ts';
import { cloud } from '../../cloud.ts';

/** All queries of the page. */
export const RECOVERY = { queryKey: ['recovery'] };

const BUSY_MS = 1500;

export const isBusy = ({ state, verifying_percent: verifying, drilling }: RecoveryPoint) =>
  state === 'creating' || verifying !== null || drilling !== null;

export const pointsQuery = queryOptions({
  queryKey: ['recovery', 'points'],
  queryFn: () => cloud.listRecoveryPoints().all(),
  // Only while a point is in progress.
  refetchInterval: ({ state: { data } }) => (data?.some(isBusy) ? BUSY_MS : false),
});

export const statusQuery = queryOptions({
  queryKey: ['recovery', 'status'],
  queryFn: async () => (await cloud.getSystemStatus()).components.recovery,
});

/** Polled: the creation of a point ends without an update. */
export const scheduleQuery = queryOptions({
  queryKey: ['recovery', 'schedule'],
  queryFn: () => cloud.getRecoverySchedule(),
  refetchInterval: ({ state: { data } }) => (data?.making_point_id ? BUSY_MS : false),
});

export const retentionQuery = (keep: RecoverySchedule['keep']) =>
  queryOptions({
    queryKey: ['recovery', 'retention', keep],
    queryFn: () => cloud.previewRecoveryRetention(keep),
    retry: false,
  });
