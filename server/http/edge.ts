/**
 * The HTTP edge: mounts declared routes on Fastify. A request goes through, in this order: request id →
 * credentials → rate limit → permission → end of the event loop's turn → body → validation → idempotency →
 * handler → response or problem. No rules live here.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import { isIP, type Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Idempotency } from '../calls/idempotency.ts';
import type { Operations } from '../calls/operations.ts';
import { NOBODY, type Principal } from '../calls/principal.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import { JSON_MAX_BYTES } from '../platform/json.ts';
import type { Meters } from '../platform/prometheus.ts';
import { endOfTick } from '../platform/tick.ts';
import { acceptBodies, assertNoForm } from './body.ts';
import type { BodyMemory } from './body-memory.ts';
import { type AdmitDeps, admit } from './caller.ts';
import { handleRoute } from './handle.ts';
import { acceptForms, assertMultipart } from './multipart.ts';
import {
  type Addresses,
  allowOrigin,
  answersPreflight,
  type CorsRules,
  hostCheck,
  type OwnAddresses,
} from './origins.ts';
import { logFailure, sendProblem, sendResponse, type UnreadResponses } from './response.ts';
import { freePaths, type Route, unknownPath } from './route.ts';
import { ownResponse } from './slow-readers.ts';

export interface EdgeDeps extends AdmitDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly meters: Meters;
  readonly idempotency: Idempotency;
  readonly operations: Operations;
  readonly routes: readonly Route[];
  /** Headers of every response. */
  readonly headers: Readonly<Record<string, string>>;
  readonly trustedProxies: readonly string[];
  /** Other origins whose scripts may read the responses; null: none. */
  readonly cors?: CorsRules | null;
  /** Allowed `Host` names while the server listens on loopback only, besides its own. */
  readonly hostNames?: readonly string[];
  readonly unread?: UnreadResponses;
  /** The memory budget of JSON bodies. */
  readonly bodies: BodyMemory;
  /** See ConnectionGuard.isReserve. */
  readonly isReserve?: (socket: Socket) => boolean;
  /** The addresses used in links of responses. */
  readonly own?: { readonly addresses: OwnAddresses; readonly origin: keyof Addresses };
  /** Others on the same port; the first that takes a request has it. */
  readonly beside?: readonly Beside[];
  /** Serves requests without a route. */
  readonly pages?: StaticFiles;
}

/** Files that are built, at paths that belong to no route. */
export interface StaticFiles {
  /** False: there is none for this request. */
  answer(request: FastifyRequest, reply: FastifyReply): boolean;
}

/** Serves the requests that it takes; all others are the edge's. */
export interface Beside {
  takes(request: IncomingMessage): boolean;
  handle(request: IncomingMessage, response: ServerResponse): void;
}

/** Signed in a header, as S3's clients do and no browser that follows a link. */
export function isAwsSigned({ headers }: Pick<IncomingMessage, 'headers'>): boolean {
  return headers.authorization?.startsWith('AWS') === true;
}

function putBeside(server: Server, others: readonly Beside[]): void {
  const takerOf = (request: IncomingMessage) => others.find((beside) => beside.takes(request));
  const own = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    const taker = takerOf(request);
    if (taker !== undefined) taker.handle(request, response);
    else for (const listener of own) listener.call(server, request, response);
  });
  // They answer `Expect: 100-continue` themselves, once they know who asks.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (takerOf(request) === undefined) response.writeContinue();
    server.emit('request', request, response);
  });
}

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal;
    /** Headers collected for the response, however it is sent. */
    responseHeaders: Record<string, string>;
    startedAt: number;
    /** The caller's address when the request arrived; `ip` is lost when the connection closes. */
    address: string;
    routeName: string;
  }
}

/** Builds the edge, not yet listening. */
export function createEdge(deps: EdgeDeps): FastifyInstance {
  const app = Fastify({
    genReqId: () => newId('req', deps.clock),
    bodyLimit: JSON_MAX_BYTES,
    requestTimeout: 0, // a long upload is no fault; ConnectionGuard cuts the slow ones
    keepAliveTimeout: 72_000,
    forceCloseConnections: 'idle',
    return503OnClosing: false,
    exposeHeadRoutes: false,
    trustProxy: deps.trustedProxies.length > 0 ? [...deps.trustedProxies] : false,
    http: {
      maxHeaderSize: 16 * 1024,
      headersTimeout: 15_000,
      connectionsCheckingInterval: 5_000,
      requireHostHeader: false, // Node's own refusal has no body; the hook below has one
    },
    routerOptions: { maxParamLength: 4096 },
    logger: false,
    // Paths that Fastify cannot route at all: no hook runs for them.
    frameworkErrors: (error, request, reply) => {
      open(deps, request, reply);
      sendProblem(deps, reply, error);
    },
  });
  app.decorateRequest('principal', null as never);
  app.decorateRequest('responseHeaders', null as never);
  app.decorateRequest('startedAt', 0);
  app.decorateRequest('address', '');
  app.decorateRequest('routeName', '');
  app.decorateRequest('heldBody', null as never);
  acceptBodies(app, deps.bodies);
  acceptForms(app);
  const checkHost = hostCheck(app.server, deps.hostNames ?? []);
  app.addHook('onRequest', (request, reply, done) => {
    open(deps, request, reply);
    const { raw, responseHeaders } = request;
    try {
      if (deps.cors) allowOrigin(deps.cors, raw, responseHeaders);
      checkHost(raw);
      if (deps.cors && answersPreflight(deps.cors, raw, responseHeaders)) {
        reply.code(204).headers(responseHeaders).send();
        return;
      }
    } catch (error) {
      sendProblem(deps, reply, error);
      return;
    }
    done();
  });
  for (const route of deps.routes) mount(app, deps, route);
  const isFree = freePaths(deps.routes);
  app.setNotFoundHandler((request, reply) => {
    try {
      deps.limiter?.take(request, request.responseHeaders);
      if (isFree(request.url) && called(deps, request, () => deps.pages?.answer(request, reply))) return;
      sendProblem(deps, reply, unknownPath(deps.routes, request.method, request.url));
    } catch (error) {
      sendProblem(deps, reply, error);
    }
  });
  app.setErrorHandler((error, _request, reply) => sendProblem(deps, reply, error));
  if (deps.beside) putBeside(app.server, deps.beside);
  return app;
}

function called<T>({ own, control }: EdgeDeps, request: FastifyRequest, work: () => T): T {
  // The operator's commands use a socket, and name no host.
  if (own === undefined || control.has(request.raw.socket)) return work();
  return own.addresses.answer(own.origin, request, work);
}

function open(deps: EdgeDeps, request: FastifyRequest, reply: FastifyReply): void {
  request.startedAt = deps.clock.monotonic();
  request.principal = NOBODY;
  request.address = addressOf(request);
  request.responseHeaders = { ...deps.headers, 'x-request-id': request.id };
  reply.raw.on('close', () => {
    request.heldBody?.release();
    record(deps, request, reply);
  });
  if (deps.isReserve?.(request.raw.socket)) reply.raw.setHeader('connection', 'close');
}

function tooManyConnections(): AppError {
  return new AppError('overloaded', 'Too many connections are open', { retryAfterSeconds: 2 });
}

/** The forwarded address of a trusted proxy if it is valid, else the proxy's own. */
function addressOf({ ip, raw }: FastifyRequest): string {
  return isIP(ip) === 0 ? (raw.socket.remoteAddress ?? '') : ip;
}

function mount(app: FastifyInstance, deps: EdgeDeps, route: Route): void {
  const onFailure = (error: AppError, requestId: string) => logFailure(deps, error, requestId);
  const handle = handleRoute(route, { ...deps, onFailure });
  const gate = (request: FastifyRequest) => admit(deps, route, request);
  const methods = route.method === 'GET' ? ['GET', 'HEAD'] : [route.method];
  app.route({
    method: methods,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    bodyLimit: route.maxBodyBytes ?? JSON_MAX_BYTES,
    onRequest: (request, reply, done) => {
      // `/api/buckets/` must not match a bucket with an empty name.
      if (Object.values(request.params as object).includes('')) {
        sendProblem(deps, reply, unknownPath(deps.routes, request.method, request.url));
        return;
      }
      request.routeName = route.name;
      if (route.usesReserve !== true && deps.isReserve?.(request.raw.socket)) {
        sendProblem(deps, reply, tooManyConnections());
        return;
      }
      let waiting: Promise<void> | undefined;
      try {
        waiting = gate(request);
      } catch (error) {
        sendProblem(deps, reply, error);
        return;
      }
      // A credential lookup has already yielded to the event loop.
      (waiting ?? endOfTick()).then(
        () => done(),
        (error) => sendProblem(deps, reply, error),
      );
    },
    preParsing: async (request, _reply, payload) => {
      if (route.consumes === 'multipart') assertMultipart(request.headers);
      else assertNoForm(request.headers);
      return payload;
    },
    handler: async (request, reply) => {
      ownResponse(reply.raw, request.principal.accountId);
      try {
        const response = await called(deps, request, () => handle(request, reply));
        if (response !== undefined) sendResponse(deps, reply, response);
      } catch (error) {
        // Fastify ignores a hijacked reply, and its reader would wait forever.
        if (!reply.raw.headersSent) throw error;
        sendProblem(deps, reply, error);
      }
      return reply;
    },
  });
}

/** 500 is a fault of ours; other 5xx errors, such as 503, are expected and say their fix. */
function levelOf(status: number): 'error' | 'warn' | 'info' | 'debug' {
  if (status === 500) return 'error';
  if (status > 500) return 'warn';
  return status >= 400 ? 'info' : 'debug';
}

function record(deps: EdgeDeps, request: FastifyRequest, reply: FastifyReply): void {
  const seconds = (deps.clock.monotonic() - request.startedAt) / 1000;
  const status = reply.raw.headersSent ? reply.raw.statusCode : 499;
  deps.meters.observeRequest(request.routeName, status, seconds);
  const level = levelOf(status);
  if (!deps.log.isLevelEnabled(level)) return;
  // The path without its query: a signed link's signature is a secret.
  const path = request.url.split('?', 1)[0];
  deps.log[level](
    {
      request_id: request.id,
      method: request.method,
      path,
      status,
      seconds,
      account: request.principal.accountId,
      address: request.address,
    },
    'request',
  );
}
