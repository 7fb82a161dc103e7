/** Recovery points over REST, for administrators. */
import { listPage, rowIdCursor } from '../http/list-page.ts';
import { defineRoute, type Route } from '../http/route.ts';
import { Type } from '../json-schema.ts';
import type { Points } from './points.ts';
import type { RecoveryKeys } from './recovery-keys.ts';
import { KeyAnswer, KeyProof, NewPointQuery, Point, PointPath, PointsQuery } from './schema.ts';

export interface RecoveryRoutesDeps {
  readonly points: Points;
  readonly keys: RecoveryKeys;
}

const POINTS = '/api/disaster-recovery/points';
const POINT = `${POINTS}/{point_id}`;
const common = { tag: 'recovery', permission: 'admin' } as const;

export function recoveryRoutes(deps: RecoveryRoutesDeps): Route[] {
  return [...pointRoutes(deps), ...keyRoutes(deps)];
}

function pointRoutes({ points }: RecoveryRoutesDeps): Route[] {
  return [
    defineRoute({
      ...common,
      method: 'POST',
      path: POINTS,
      name: 'createRecoveryPoint',
      summary: 'Make a recovery point of the whole cloud',
      description: 'Answers when its moment is fixed; copying goes on. `wait` waits for its end.',
      query: NewPointQuery,
      responses: { 201: Point },
      errors: ['point_in_progress', 'out_of_space', 'read_only'],
      handler: async (call) => {
        const point = await points.create(call);
        const { wait } = call.query;
        return wait === undefined ? point : points.wait(point.point_id, wait * 1000);
      },
    }),
    defineRoute({
      ...common,
      method: 'GET',
      path: POINTS,
      name: 'listRecoveryPoints',
      summary: 'List the recovery points, oldest first',
      query: PointsQuery,
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
      path: POINT,
      name: 'getRecoveryPoint',
      summary: 'Read a recovery point',
      params: PointPath,
      responses: { 200: Point },
      errors: ['point_not_found'],
      handler: ({ params }) => points.find(params.point_id),
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: `${POINT}/cancel`,
      name: 'cancelRecoveryPoint',
      summary: 'Stop making a recovery point',
      params: PointPath,
      responses: { 200: Point },
      errors: ['point_not_found', 'point_invalid_state'],
      handler: ({ params }) => points.cancel(params.point_id),
    }),
  ];
}

function keyRoutes({ keys }: RecoveryRoutesDeps): Route[] {
  return [
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/admin/recovery-key',
      name: 'showRecoveryKey',
      summary: 'Show the recovery key, until somebody has proved to have it',
      isRepeatable: true,
      responses: { 200: KeyAnswer },
      errors: ['recovery_key_taken'],
      handler: () => keys.show(),
    }),
    defineRoute({
      ...common,
      method: 'POST',
      path: '/api/admin/recovery-key/confirm',
      name: 'confirmRecoveryKey',
      summary: 'Prove to have the recovery key; it is not shown again',
      isRepeatable: true,
      body: KeyProof,
      responses: { 200: KeyAnswer },
      handler: ({ body }) => keys.confirm(body.recovery_key),
    }),
  ];
}
