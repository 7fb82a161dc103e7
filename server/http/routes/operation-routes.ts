/** Operations over REST, and resource changes over a WebSocket. */
import type { FastifyReply } from 'fastify';
import type { Operation, OperationSummary, Operations } from '../../calls/operations.ts';
import type { Wait } from '../../calls/operations-of-nodes.ts';
import type { Principal, Progress } from '../../calls/principal.ts';
import type { Tickets } from '../../calls/tickets.ts';
import type { Updates } from '../../calls/updates.ts';
import { formatTime, formatTimeOrNull } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { isId } from '../../platform/ids.ts';
import { namedObject, Type, textOrNull } from '../../platform/json/json-schema.ts';
import type { AsksPassword } from '../caller.ts';
import { upgradeRequired } from '../connections/upgrades.ts';
import type { SocketRoute } from '../connections/web-sockets.ts';
import { invalidCursor, listPage, Paging } from '../list-page.ts';
import { PROBLEM_SCHEMA, toProblem } from '../response.ts';
import { defineRoute, type Route, secretCalls } from '../route.ts';

/** An operation as shown to its caller, in the initial 202 and when it is read. */
export const OperationView = namedObject(
  'Operation',
  {
    operation_id: Type.String(),
    name: Type.String({ description: 'operationId of the call' }),
    state: Type.Union([Type.Literal('running'), Type.Literal('succeeded'), Type.Literal('failed')]),
    status: Type.Union([Type.Integer(), Type.Null()], {
      description: 'Status that the call would have returned; null until it has ended',
    }),
    result: Type.Unknown({ description: 'Response body of the call if it succeeded; else null' }),
    error: Type.Union([PROBLEM_SCHEMA, Type.Null()], {
      description: 'Problem details of the call if it failed; else null',
    }),
    progress: Type.Union(
      [
        namedObject('OperationProgress', {
          done: Type.Integer({ description: 'Number of items processed, such as objects' }),
          total: Type.Union([Type.Integer(), Type.Null()], {
            description: 'Total number of items; null: unknown',
          }),
          bytes: Type.Integer(),
          total_bytes: Type.Union([Type.Integer(), Type.Null()]),
        }),
        Type.Null(),
      ],
      { description: 'Progress of a running call; null: ended, or no progress available' },
    ),
    is_cancellable: Type.Boolean({ description: 'Whether the operation can be cancelled now' }),
    created_at: Type.String(),
    ended_at: textOrNull(),
  },
  { description: 'A call that runs in the background' },
);

const OperationEntry = namedObject('OperationSummary', {
  operation_id: Type.String(),
  name: Type.String({ description: 'operationId of the call' }),
  state: OperationView.properties.state,
  status: OperationView.properties.status,
  created_at: Type.String(),
  ended_at: textOrNull(),
});

async function* presentList(operations: AsyncIterable<OperationSummary>) {
  for await (const { operationId, name, state, status, createdAt, endedAt } of operations)
    yield {
      operation_id: operationId,
      name,
      state,
      status,
      created_at: formatTime(createdAt),
      ended_at: formatTimeOrNull(endedAt),
    };
}

/** Status of a response that is an operation. */
export const ACCEPTED = 202;

/** Headers of a 202 response. */
export function operationHeaders(operationId: string): Record<string, string> {
  return { location: `/api/operations/${operationId}`, 'preference-applied': 'respond-async' };
}

/** An operation in the form of OperationView. `requestId`: of the request that reads it. */
export function presentOperation(operation: Operation, requestId: string) {
  const { operationId, name, createdAt, endedAt, progress, isCancellable } = operation;
  return {
    operation_id: operationId,
    name,
    ...outcome(operation, requestId),
    progress: progress && presentProgress(progress),
    is_cancellable: isCancellable,
    created_at: formatTime(createdAt),
    ended_at: formatTimeOrNull(endedAt),
  };
}

function presentProgress({ done, total, bytes, totalBytes: total_bytes }: Progress) {
  return { done, total, bytes, total_bytes };
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
    'Cloudlet or its disk failed before the outcome of this call was stored: it may or may not have taken effect',
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
      description:
        'Seconds to wait for the end of the operation; the response is sent as soon as it has ended',
    }),
  ),
});

export interface OperationRoutesDeps {
  readonly operations: Operations;
  /** Calls that may become operations, for those whose answers contain a secret; default: none. */
  readonly routesOf?: () => readonly Route[];
  readonly passwords?: Pick<AsksPassword, 'assertFresh'>;
}

export function operationRoutes({ operations, routesOf, passwords }: OperationRoutesDeps): Route[] {
  let secret: ReadonlySet<string> | undefined;
  const present = async (principal: Principal, operation: Operation, requestId: string) => {
    secret ??= secretCalls(routesOf?.() ?? []);
    const isSecret = operation.response !== null && secret.has(operation.name);
    if (isSecret && principal.via === 'session') await passwords?.assertFresh(principal);
    return presentOperation(operation, requestId);
  };
  // It is shown again, perhaps to another credential of the account. present() asks for the password.
  const audit = {
    kind: 'secret',
    target: 'params.id',
    hasEntry: (_: Principal, answer: unknown) => showsSecretOf(answer, secret),
  } as const;
  return [
    defineRoute({
      method: 'GET',
      path: '/api/operations',
      name: 'listOperations',
      tag: 'system',
      summary: 'List calls sent with Prefer: respond-async, newest first',
      description:
        'Operations of the last 24 hours: all of the account for its main key and its sessions, otherwise those of the same key.',
      permission: 'authenticated',
      query: Type.Object(Paging),
      responses: { 200: Type.Array(OperationEntry) },
      produces: 'list',
      errors: ['invalid_cursor'],
      handler: async ({ principal, query: { limit, cursor }, request }) => {
        if (cursor !== undefined && !isId('op', cursor)) throw invalidCursor();
        const most = limit === undefined ? Number.MAX_SAFE_INTEGER : limit + 1;
        const entries = presentList(operations.list(principal, { before: cursor, limit: most }));
        return listPage({ request, limit, entries, cursorOf: (entry) => entry.operation_id });
      },
    }),
    defineRoute({
      method: 'GET',
      path: '/api/operations/{id}',
      name: 'getOperation',
      audit,
      oldSession: 'new',
      tag: 'system',
      summary: 'Show the state and outcome of a call sent with Prefer: respond-async',
      description:
        "Available for 24 hours to the key that made the call, to the account's own key and to its sessions.",
      permission: 'authenticated',
      params: OperationPath,
      query: WaitQuery,
      responses: { 200: OperationView },
      errors: ['operation_not_found', 'password_required'],
      handler: async ({ principal, params, query, request, reply }) => {
        const found = await operations.find(principal, params.id, patience(reply, query.wait));
        return present(principal, found, request.id);
      },
    }),
    defineRoute({
      method: 'POST',
      path: '/api/operations/{id}/cancel',
      name: 'cancelOperation',
      audit: 'secret',
      oldSession: 'new',
      tag: 'system',
      summary: 'Cancel a call sent with Prefer: respond-async',
      description:
        'The effects until then stay, and the error says how much was done. Only operations with `is_cancellable` can be cancelled; ' +
        'an operation that has ended does not change. `wait` waits for the end.',
      permission: 'authenticated',
      params: OperationPath,
      query: WaitQuery,
      isRepeatable: true,
      responses: { 200: OperationView },
      errors: ['operation_not_found', 'operation_not_cancellable', 'password_required'],
      handler: async (call) => {
        const { principal, params, query, request, reply } = call;
        const ended = await operations.cancel(call, params.id, patience(reply, query.wait));
        return present(principal, ended, request.id);
      },
    }),
  ];
}

/** Whether this operation, as it is shown, contains the secret of its call. */
function showsSecretOf(answer: unknown, secret: ReadonlySet<string> | undefined): boolean {
  const { name, result } = answer as ReturnType<typeof presentOperation>;
  return result !== null && secret?.has(name) === true;
}

function patience({ raw }: FastifyReply, seconds = 0): Wait {
  const gone = new AbortController();
  raw.once('close', () => gone.abort());
  return { ms: seconds * 1000, signal: gone.signal };
}

/** Resource changes as they happen, over a WebSocket. */
const PATH = '/api/updates';
const COMMON = { path: PATH, name: 'watchUpdates', permission: 'authenticated' } as const;
/** Browsers do not expose pings, so a dead connection would go unnoticed. */
const HEARTBEAT_MS = 20_000;

/** The documented address, for callers without WebSocket. */
export function updateRoutes(): Route[] {
  return [
    defineRoute({
      ...COMMON,
      method: 'GET',
      tag: 'system',
      summary: 'Receive resource changes over a WebSocket',
      description:
        'Messages are JSON. `{"type":"sync"}` is sent first, and when too many resources have changed to list them: read ' +
        'everything again. `{"type":"changed","things":[{"kind":"vm","id":"vm-…"}]}` names changed resources, not their new state: ' +
        'kinds are `vm`, `database`, `balance`, `operation` and, for administrators, `recovery_point`; a key only ' +
        'gets changes that it may read. `{"type":"alive"}` is sent every 20 seconds. Changes during a disconnection are ' +
        'not sent later. Closed with 1008 when the key or session ends. Browsers use their session.',
      responses: { 101: Type.Unknown({ description: 'A WebSocket' }) },
      errors: ['overloaded', 'cross_site_request', 'bad_http', 'upgrade_required'],
      handler: () => {
        throw upgradeRequired(
          'Updates need a WebSocket; this request is not an upgrade',
          'Open it with a WebSocket client',
        );
      },
    }),
  ];
}

/** The path of the WebSocket, like that of the route. */
export function updatesSocket(updates: Updates, tickets: Tickets): SocketRoute {
  return {
    ...COMMON,
    redeem: (ticket) => tickets.redeem(ticket, COMMON.path),
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
