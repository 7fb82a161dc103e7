/** What became of a call that was answered before it had ended. */
import type { Operation, Operations } from '../calls/operations.ts';
import type { Updates } from '../calls/updates.ts';
import { formatTime, formatTimeOrNull } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { namedObject, Type } from '../platform/json-schema.ts';
import { PROBLEM_SCHEMA, toProblem } from './response.ts';
import { defineRoute, type Route } from './route.ts';
import type { SocketRoute } from './web-sockets.ts';

/** An operation as its caller sees it, in the 202 that begins it and when it is looked up. */
export const OperationView = namedObject(
  'Operation',
  {
    operation_id: Type.String(),
    name: Type.String({ description: 'The call it is, by its operationId here' }),
    state: Type.Union([Type.Literal('running'), Type.Literal('succeeded'), Type.Literal('failed')]),
    status: Type.Union([Type.Integer(), Type.Null()], {
      description: 'What the call would have been answered with; null until it has ended',
    }),
    result: Type.Unknown({ description: 'Once it has succeeded, the body of that response; else null' }),
    error: Type.Union([PROBLEM_SCHEMA, Type.Null()], { description: 'Once it has failed, its problem' }),
    created_at: Type.String(),
    ended_at: Type.Union([Type.String(), Type.Null()]),
  },
  { description: 'A call that was answered before it had ended' },
);

/** Status of a response that is an operation. */
export const ACCEPTED = 202;

/** Headers of such a response. */
export function operationHeaders(operationId: string): Record<string, string> {
  return { location: `/api/operations/${operationId}`, 'preference-applied': 'respond-async' };
}

/** An operation in the shape of OperationView. `requestId`: of the request that asks. */
export function presentOperation(operation: Operation, requestId: string) {
  const { operationId, name, createdAt, endedAt } = operation;
  return {
    operation_id: operationId,
    name,
    ...outcome(operation, requestId),
    created_at: formatTime(createdAt),
    ended_at: formatTimeOrNull(endedAt),
  };
}

function outcome({ state, response }: Operation, requestId: string) {
  if (state === 'interrupted') {
    const error = toProblem(interrupted(), requestId);
    return { state: 'failed', status: error.status, result: null, error };
  }
  if (response === null) return { state: 'running', status: null, result: null, error: null };
  const { status } = response;
  const body = JSON.parse(response.body);
  if (status < 400) return { state: 'succeeded', status, result: body, error: null };
  return { state: 'failed', status, result: null, error: body };
}

function interrupted(): AppError {
  return new AppError(
    'operation_interrupted',
    'Cloudlet or its disk failed before the outcome of this call was stored: it may have had its effect or none',
    { hint: 'Check the current state of the resource before retrying' },
  );
}

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

/** Changes of what the caller has, as they happen, over a WebSocket. */
const PATH = '/api/updates';
const COMMON = { path: PATH, name: 'watchUpdates', permission: 'authenticated' } as const;
/** Browsers do not see pings, and so not that a connection is dead. */
const HEARTBEAT_MS = 20_000;

/** The address as it is documented, for callers without WebSocket. */
export function updateRoutes(): Route[] {
  return [
    defineRoute({
      ...COMMON,
      method: 'GET',
      tag: 'system',
      summary: 'What changes, as it happens, as a WebSocket',
      description:
        'Messages are JSON. `{"type":"sync"}` comes first, and when too much changed to be named: read again ' +
        'what you show. `{"type":"changed","things":[{"kind":"vm","id":"vm-…"}]}` names what changed, not how: ' +
        'kinds are `vm`, `database`, `balance`, `operation` and, for administrators, `recovery_point`; a key is ' +
        'told only of what it may read. `{"type":"alive"}` comes every 20 seconds. Nothing is kept for those ' +
        'who were away. Closed with 1008 when the key or session ends. Browsers come with their session.',
      responses: { 101: Type.Unknown({ description: 'A WebSocket' }) },
      errors: ['overloaded', 'cross_site_request', 'bad_http', 'upgrade_required'],
      handler: () => {
        throw new AppError('upgrade_required', 'Updates are a WebSocket; this request asks for none', {
          hint: 'Open it with a WebSocket client',
          headers: { upgrade: 'websocket' },
        });
      },
    }),
  ];
}

/** The same address as the WebSocket it is. */
export function updatesSocket(updates: Updates): SocketRoute {
  return {
    ...COMMON,
    redeem: () => {
      throw new AppError('invalid_ticket', 'Updates are watched with a key or a session, not with a ticket');
    },
    prepare: async (principal) => {
      let send: (message: object) => void = () => {};
      const stop = updates.watch(principal, {
        changed: (things) => send({ type: 'changed', things }),
        lost: () => send({ type: 'sync' }),
      });
      const heartbeat = setInterval(() => send({ type: 'alive' }), HEARTBEAT_MS).unref();
      return {
        begin: (channel) => {
          send = (message) => channel.send(JSON.stringify(message));
          send({ type: 'sync' });
        },
        receive: async () => {},
        end: () => {
          clearInterval(heartbeat);
          stop();
        },
      };
    },
  };
}
