/** What became of a call that was answered before it had ended. */
import type { Operations } from '../calls/operations.ts';
import { Type } from '../platform/json-schema.ts';
import { OperationView, presentOperation } from './operation-view.ts';
import { defineRoute, type Route } from './route.ts';

const MAX_WAIT_SECONDS = 60;

const OperationPath = Type.Object({ id: Type.String({ description: 'operation_id' }) });
const WaitQuery = Type.Object({
  wait: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_WAIT_SECONDS,
      description: 'Seconds to wait for its end; the response comes as soon as it has ended',
    }),
  ),
});

export interface OperationRoutesDeps {
  readonly operations: Operations;
}

export function operationRoutes({ operations }: OperationRoutesDeps): Route[] {
  return [
    defineRoute({
      method: 'GET',
      path: '/api/operations/{id}',
      name: 'getOperation',
      tag: 'system',
      summary: 'State and outcome of a call that was sent with Prefer: respond-async',
      description: "Known for 24 hours, to the key that asked, to the account's own key and to its sessions.",
      permission: 'authenticated',
      params: OperationPath,
      query: WaitQuery,
      responses: { 200: OperationView },
      errors: ['operation_not_found'],
      handler: async ({ principal, params, query: { wait = 0 }, request, reply }) => {
        const gone = new AbortController();
        reply.raw.once('close', () => gone.abort());
        const patience = { ms: wait * 1000, signal: gone.signal };
        return presentOperation(await operations.find(principal, params.id, patience), request.id);
      },
    }),
  ];
}
