/** Recovery points over REST, for administrators. */
import { prefersAsync } from '../http/handle.ts';
import { listPage, Paging, rowIdCursor } from '../http/list-page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { inFirstCommit } from '../metadata/change.ts';
import { formatTimeOrNull } from '../platform/clock.ts';
import { Type } from '../platform/json/json-schema.ts';
import type { Drills } from './drill/drills.ts';
import type { Verifications } from './drill/verifications.ts';
import type { LogArchive } from './logs/log-archive.ts';
import type { LogReport } from './logs/log-verification.ts';
import type { AccountRestores } from './points/account-restores.ts';
import type { Points } from './points/points.ts';
import type { Removals } from './points/removals.ts';
import type { RecoveryKeys } from './repository/recovery-keys.ts';
import { type ScheduleRoutesDeps, scheduleRoutes } from './schedule/schedule-routes.ts';
import {
  AccountRestorePath,
  ArchivedLogs,
  Checked,
  DrillBody,
  DrillQuery,
  KeyProof,
  NewAccountRestore,
  NewPointQuery,
  Point,
  PointPath,
  RecoveryKey,
  Removable,
  RestoredAccount,
  VerifyQuery,
} from './schema.ts';

export interface RecoveryRoutesDeps extends ScheduleRoutesDeps {
  readonly points: Points;
  readonly verifications: Verifications;
  readonly drills: Drills;
  readonly removals: Removals;
  readonly logs: Pick<LogArchive, 'report'>;
  readonly keys: RecoveryKeys;
  readonly accounts: AccountRestores;
}

const POINTS = '/api/disaster-recovery/points';
const POINT = `${POINTS}/{point_id}`;
const LATEST =
  '`latest`: the newest complete point; if there is none, the newest partial one, then a damaged one.';
const common = { tag: 'recovery', permission: 'admin' } as const;

export function recoveryRoutes(deps: RecoveryRoutesDeps): Route[] {
  return [
    ...pointRoutes(deps),
    ...careRoutes(deps),
    accountRoute(deps),
    ...targetRoutes(deps),
    ...scheduleRoutes(deps),
  ];
}

function pointRoutes({ points }: RecoveryRoutesDeps): Route[] {
  return [
    defineRoute({
      ...common,
      method: 'POST',
      path: POINTS,
      name: 'createRecoveryPoint',
      livesOn: 'host',
      summary: 'Create a recovery point of the whole cloud',
      description:
        'Responds when the snapshot is taken; copying continues. `wait` waits until copying has ended, as does the operation ' +
        'of `Prefer: respond-async`.',
      query: NewPointQuery,
      responses: { 201: Point },
      errors: ['point_in_progress', 'target_in_use', 'target_unavailable', 'out_of_space', 'read_only'],
      handler: async (call) => {
        const { wait } = call.query;
        const isAsync = prefersAsync(call.request);
        // The operation ends with the point, not when it starts.
        const inFirst = inFirstCommit(call.entry);
        const point = await (isAsync ? inFirst((first) => points.create(first)) : points.create(call));
        if (isAsync) return points.wait(point.point_id, FOR_GOOD);
        return wait === undefined ? point : points.wait(point.point_id, wait * 1000);
      },
    }),
    defineRoute({
      ...common,
      method: 'GET',
      permission: 'admin:read',
      path: POINTS,
      name: 'listRecoveryPoints',
      summary: 'List the recovery points, oldest first',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(Point) },
      errors: ['invalid_cursor'],
      produces: 'list',
      handler: ({ query, request }) => {
        const { limit, cursor } = query;
        const entries = points.list(rowIdCursor(cursor), limit === undefined ? Infinity : limit + 1);
        return listPage({ request, limit, entries, cursorOf: ({ id }) => String(id) });
      },
    }),
    defineRoute({
      ...common,
      method: 'GET',
      permission: 'admin:read',
      path: POINT,
      name: 'getRecoveryPoint',
      livesOn: 'host-or-any',
      summary: 'Read a recovery point',
      description: LATEST,
      params: PointPath,
      responses: { 200: Point },
      errors: ['point_not_found'],
      handler: ({ params }) => points.find(params.point_id),
    }),
  ];
}

/** Operations on an existing point. */
function careRoutes(deps: RecoveryRoutesDeps): Route[] {
  const { points, verifications, drills, removals } = deps;
  return [
    defineRoute({
      ...common,
      method: 'POST',
      path: `${POINT}/verify`,
      name: 'verifyRecoveryPoint',
      livesOn: 'host',
      summary: 'Verify a recovery point by reading every byte',
      description:
        'Responds when verification has begun; `verifying_percent` is the progress. At the end the point is `verified`, ' +
        'or `damaged` with the damaged files of the target in `damage`. `wait` waits for the end. ' +
        LATEST,
      params: PointPath,
      query: VerifyQuery,
      isRepeatable: true,
      responses: { 200: Point },
      errors: [
        ...(['point_not_found', 'point_invalid_state', 'point_in_progress'] as const),
        ...(['target_in_use', 'target_unavailable'] as const),
      ],
      handler: async ({ params: { point_id: id }, query: { wait = 0 }, request }) => {
        const row = await points.named(id);
        await verifications.begin(row);
        await verifications.work.wait(row.point_id, prefersAsync(request) ? FOR_GOOD : wait * 1000);
        return points.find(row.point_id);
      },
    }),
    drillRoute(deps),
    defineRoute({
      ...common,
      method: 'POST',
      path: `${POINT}/cancel`,
      name: 'cancelRecoveryPoint',
      livesOn: 'host',
      summary: 'Cancel the creation, verification or drill of a recovery point',
      params: PointPath,
      responses: { 200: Point },
      errors: ['point_not_found', 'point_invalid_state'],
      handler: async ({ params: { point_id: id }, entry }) => {
        const isOver = (await verifications.work.cancel(id)) || (await drills.work.cancel(id));
        return isOver ? points.find(id) : points.cancel(id, entry);
      },
    }),
    defineRoute({
      ...common,
      method: 'DELETE',
      path: POINT,
      name: 'deleteRecoveryPoint',
      livesOn: 'host',
      summary: 'Delete a recovery point',
      description:
        'Can be undeleted until `deletes_at`; then it and its unshared data are removed. A failed or cancelled point ' +
        'is removed immediately.',
      params: PointPath,
      responses: { 200: Point },
      errors: ['point_not_found', 'point_invalid_state', 'target_in_use', 'target_unavailable'],
      handler: (call) => removals.remove(call, call.params.point_id),
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: `${POINT}/undelete`,
      name: 'undeleteRecoveryPoint',
      livesOn: 'host',
      summary: 'Undelete a recovery point',
      params: PointPath,
      responses: { 200: Point },
      errors: ['point_not_found', 'point_invalid_state', 'target_in_use', 'target_unavailable'],
      handler: (call) => removals.undelete(call, call.params.point_id),
    }),
  ];
}

function drillRoute({ points, drills }: RecoveryRoutesDeps): Route {
  return defineRoute({
    ...common,
    method: 'POST',
    path: `${POINT}/drill`,
    name: 'drillRecoveryPoint',
    livesOn: 'host',
    summary: 'Test a recovery point by restoring it beside this cloud',
    description:
      'Restores the point into a scratch directory, starts a second, isolated cloud on it, compares it ' +
      'with the point, opens its databases and boots one of its machines without a network. Responds when the ' +
      'drill has begun; `drilling` is its stage, `drill` its result. `wait` waits for the end. ' +
      LATEST,
    params: PointPath,
    query: DrillQuery,
    body: DrillBody,
    isRepeatable: true,
    responses: { 200: Point },
    errors: ['point_not_found', 'point_invalid_state', 'point_in_progress', 'target_unavailable'],
    handler: async ({ params: { point_id: id }, query: { wait = 0 }, body, request }) => {
      const row = await points.named(id);
      await drills.begin(row, body.recovery_key);
      await drills.work.wait(row.point_id, prefersAsync(request) ? FOR_GOOD : wait * 1000);
      return points.find(row.point_id);
    },
  });
}

function accountRoute({ accounts }: RecoveryRoutesDeps): Route {
  return defineRoute({
    ...common,
    method: 'POST',
    path: `${POINT}/accounts/{account}/restore`,
    name: 'restoreAccount',
    audit: 'secret',
    livesOn: 'host',
    summary: 'Restore one account of a recovery point as a new account',
    description:
      'The live accounts stay as they are. The new account gets the buckets with all versions, the databases and the ' +
      'machines (stopped) of the old one, under its own quotas, and is charged for them from now on; it starts with the ' +
      'credits of a new account and a new key. Passwords, keys, sessions, webhooks, the ledger and the ' +
      'rights of other accounts are not restored. Repeat the call with the same user name to continue after an ' +
      'interruption or a refusal: restored resources are not created again.',
    params: AccountRestorePath,
    body: NewAccountRestore,
    isRepeatable: true,
    isCancellable: true,
    responses: { 200: RestoredAccount },
    errors: [
      'operation_cancelled',
      ...(['point_not_found', 'account_not_found', 'username_taken', 'email_taken'] as const),
      ...(['data_corrupted', 'target_unavailable', 'out_of_space', 'read_only', 'write_conflict'] as const),
    ],
    handler: ({ params, body, work, entry }) =>
      accounts.restore(params.point_id, params.account, { ...body, work, entry }),
  });
}

const FOR_GOOD = 2 ** 31 - 1;

/** Routes of the recovery target and the recovery key. */
function targetRoutes({ keys, removals, logs }: RecoveryRoutesDeps): Route[] {
  return [
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/disaster-recovery/check',
      name: 'checkRecoveryTarget',
      livesOn: 'host',
      summary: 'Check and repair the recovery repository',
      description:
        'Reconciles the list of recovery points with the target, reports points with missing data, and removes ' +
        'unreferenced data left by incomplete points and by deleted points past `deletes_at`.',
      isRepeatable: true,
      responses: { 200: Checked },
      errors: ['point_in_progress', 'target_in_use', 'target_unavailable', 'read_only'],
      handler: ({ entry }) => removals.check(entry),
    }),
    defineRoute({
      ...common,
      method: 'GET',
      permission: 'admin:read',
      path: '/api/disaster-recovery/removable',
      name: 'listRemovableRecoveryFiles',
      livesOn: 'host',
      summary: 'List the files that the operator of the recovery target must remove',
      description:
        'Empty unless the credentials of the target may not remove objects (`reclaim`). Remove the files before the ' +
        'next recovery point is created, which may use them again.',
      responses: { 200: Removable },
      errors: ['point_in_progress', 'target_unavailable', 'target_in_use', 'data_corrupted'],
      handler: () => removals.removable(),
    }),
    defineRoute({
      ...common,
      method: 'GET',
      permission: 'admin:read',
      path: '/api/disaster-recovery/archived-logs',
      name: 'getArchivedLogs',
      livesOn: 'host',
      summary: 'Read the result of the last verification of the archived logs of database servers',
      description:
        'The logs are read whenever the newest recovery point is verified or drilled. `needed_by` of a piece is the base ' +
        'copy that contains it.',
      responses: { 200: ArchivedLogs },
      handler: async () => presentLogs(await logs.report()),
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/admin/recovery-key',
      name: 'showRecoveryKey',
      audit: 'secret',
      livesOn: 'host',
      summary: 'Show the recovery key until it is confirmed',
      isRepeatable: true,
      responses: { 200: RecoveryKey },
      errors: ['recovery_key_taken', 'target_in_use', 'target_unavailable'],
      handler: () => keys.show(),
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/admin/recovery-key/confirm',
      name: 'confirmRecoveryKey',
      livesOn: 'host',
      summary: 'Confirm that you have stored the recovery key, which is not shown again',
      isRepeatable: true,
      body: KeyProof,
      responses: { 200: RecoveryKey },
      errors: ['target_in_use', 'target_unavailable'],
      handler: (call) => keys.confirm(call, call.body.recovery_key),
    }),
  ];
}

function presentLogs(report: LogReport | null): ArchivedLogs {
  return {
    verified_at: formatTimeOrNull(report?.at ?? null),
    servers: report?.servers ?? 0,
    base_copies: report?.bases ?? 0,
    log_parts: report?.parts ?? 0,
    size_bytes: report?.bytes ?? 0,
    unread_files: report?.unread ?? 0,
    damaged_files: report?.damagedFiles ?? 0,
    damage: [...(report?.damage ?? [])],
  };
}
