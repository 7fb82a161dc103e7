/**
 * The HTTP edge: mounts declared routes on Fastify. The order of steps for a request: request id →
 * credentials → rate limit → permission → end of the event loop's turn → body → validation →
 * idempotency → handler → response or problem. Domain rules do not belong here.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { AuditTrail } from '../calls/audit.ts';
import type { Idempotency } from '../calls/idempotency.ts';
import type { Operations } from '../calls/operations.ts';
import type { Principal } from '../calls/principal.ts';
import type { Clock } from '../platform/clock.ts';
import { endOfTick } from '../platform/concurrency.ts';
import type { AppError } from '../platform/errors.ts';
import { JSON_MAX_BYTES } from '../platform/json/json.ts';
import { auditRuleOf, isQuiet, noteTurnedAway } from './audited.ts';
import { acceptBodies, notJson } from './bodies/body.ts';
import type { BodyMemory } from './bodies/body-memory.ts';
import { acceptForms, assertMultipart } from './bodies/multipart.ts';
import { type AdmitDeps, admit } from './caller.ts';
import { type Forward, hostUnreachable } from './forwarding/forward.ts';
import { handleRoute } from './handle.ts';
import {
  type Addresses,
  allowOrigin,
  answersPreflight,
  type CorsRules,
  type OwnAddresses,
} from './origins.ts';
import { sendProblem, sendResponse, toAppError } from './response.ts';
import { freePaths, type Route, unknownPath } from './route.ts';

export interface EdgeDeps extends AdmitDeps {
  readonly clock: Clock;
  readonly idempotency: Idempotency;
  readonly operations: Operations;
  readonly routes: readonly Route[];
  /** Default: nothing is kept. */
  readonly audit?: AuditTrail;
  /** Proxies whose X-Forwarded-Host and -Proto are trusted. */
  readonly trustedProxies: readonly string[];
  /** Other origins whose scripts may read the responses; null: none. */
  readonly cors?: CorsRules | null;
  /** The memory budget of JSON bodies. */
  readonly bodies: BodyMemory;
  /** The addresses used in links of responses. */
  readonly own?: { readonly addresses: OwnAddresses; readonly origin: keyof Addresses };
  /** Other protocols on the same port; the first that accepts a request handles it. */
  readonly beside?: readonly Beside[];
  /** Serves requests without a route. */
  readonly pages?: StaticFiles;
  /** Forwards to the host node; undefined: this is the host node. */
  readonly forward?: Forward | undefined;
}

/** Built files, at paths without a route. */
export interface StaticFiles {
  /** False: not handled. */
  answer(request: FastifyRequest, reply: FastifyReply): boolean;
}

/** Handles the requests that it accepts; the edge handles all others. */
export interface Beside {
  takes(request: IncomingMessage): boolean;
  handle(request: IncomingMessage, response: ServerResponse): void;
}

/** Signed in a header, as S3 clients do; a browser that follows a link cannot. */
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
  // Routes answer `Expect: 100-continue` themselves, after authentication.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    if (takerOf(request) === undefined) response.writeContinue();
    server.emit('request', request, response);
  });
}

declare module 'fastify' {
  interface FastifyRequest {
    // See Exchange.
    principal: Principal;
    responseHeaders: Record<string, string>;
    startedAt: number;
    address: string;
    routeName: string;
    /** See RouteInput. */
    isSecretHidden: boolean;
  }
  interface FastifyContextConfig {
    usesReserve?: boolean;
  }
}

/** Builds the edge, not yet listening. */
export function createEdge(deps: EdgeDeps): FastifyInstance {
  const app = Fastify({
    genReqId: (raw: IncomingMessage) => deps.door.idOf(raw),
    bodyLimit: JSON_MAX_BYTES,
    requestTimeout: 0, // a long upload is fine; ConnectionGuard aborts slow ones
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
    // Paths that Fastify cannot route; no hook runs for them.
    frameworkErrors: (error, request, reply) => {
      open(deps, request, reply);
      sendProblem(deps.door, reply, error);
    },
  });
  app.decorateRequest('principal', null as never);
  app.decorateRequest('responseHeaders', null as never);
  app.decorateRequest('startedAt', 0);
  app.decorateRequest('address', '');
  app.decorateRequest('routeName', '');
  app.decorateRequest('isSecretHidden', false);
  app.decorateRequest('heldBody', null as never);
  acceptBodies(app, deps.bodies);
  acceptForms(app);
  deps.door.watch(app.server);
  app.addHook('onRequest', (request, reply, done) => {
    open(deps, request, reply);
    const { raw, responseHeaders } = request;
    try {
      if (deps.cors) allowOrigin(deps.cors, raw, responseHeaders);
      deps.door.admit(request, request.routeOptions.config.usesReserve);
      if (deps.cors && answersPreflight(deps.cors, raw, responseHeaders)) {
        reply.code(204).headers(responseHeaders).send();
        return;
      }
    } catch (error) {
      // Reported in the protocol of the called service.
      done(error as Error);
      return;
    }
    done();
  });
  for (const route of deps.routes) mount(app, deps, route);
  const isFree = freePaths(deps.routes);
  app.setNotFoundHandler((request, reply) => {
    try {
      if (deps.limitsCalls) deps.door.limit(request, request.responseHeaders);
      if (isFree(request.url) && called(deps, request, () => deps.pages?.answer(request, reply))) return;
      sendProblem(deps.door, reply, unknownPath(deps.routes, request.method, request.url));
    } catch (error) {
      sendProblem(deps.door, reply, error);
    }
  });
  app.setErrorHandler((error, _request, reply) => sendProblem(deps.door, reply, error));
  if (deps.beside) putBeside(app.server, deps.beside);
  return app;
}

function called<T>({ own, control, door }: EdgeDeps, request: FastifyRequest, work: () => T): T {
  // The operator's commands use a socket and send no host name.
  if (own === undefined || control.has(request.raw.socket)) return work();
  const forwarded = door.forwarded(request.raw);
  if (forwarded?.isOperator === true) return work();
  return own.addresses.answer(own.origin, forwarded ?? request, work);
}

function open({ door }: EdgeDeps, request: FastifyRequest, reply: FastifyReply): void {
  reply.raw.on('close', () => request.heldBody?.release());
  door.begin(request, reply.raw);
}

function mount(app: FastifyInstance, deps: EdgeDeps, route: Route): void {
  const { door } = deps;
  const onFailure = (error: AppError, requestId: string) => door.report({ id: requestId }, error);
  const handle = handleRoute(route, { ...deps, onFailure });
  const gate = (request: FastifyRequest) => admit(deps, route, request);
  const methods = route.method === 'GET' ? ['GET', 'HEAD'] : [route.method];
  const hasNoEntry = isQuiet(auditRuleOf(route));
  const isElsewhere = deps.forward !== undefined && route.livesOn !== undefined;
  app.route({
    method: methods,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    bodyLimit: route.maxBodyBytes ?? JSON_MAX_BYTES,
    config: { usesReserve: route.usesReserve === true },
    onRequest: (request, reply, done) => {
      // `/api/buckets/` must not match a bucket with an empty name.
      if (Object.values(request.params as object).includes('')) {
        sendProblem(door, reply, unknownPath(deps.routes, request.method, request.url));
        return;
      }
      request.routeName = route.name;
      const turnAway = (error: unknown) => {
        noteTurnedAway(deps.audit, request, { action: route.name, error: toAppError(error) });
        sendProblem(door, reply, error);
      };
      let waiting: Promise<void> | undefined;
      try {
        waiting = gate(request);
      } catch (error) {
        turnAway(error);
        return;
      }
      // A credential lookup has already yielded to the event loop.
      (waiting ?? endOfTick()).then(
        () => (isElsewhere ? passOn(deps, route, { request, reply, done }) : done()),
        turnAway,
      );
    },
    preParsing: async (request, _reply, payload) => {
      if (route.consumes === 'multipart') assertMultipart(request.headers);
      else assertNoForm(request.headers['content-type']);
      return payload;
    },
    handler: async (request, reply) => {
      door.identify(request, reply.raw, request.principal);
      try {
        const response = await called(deps, request, () => handle(request, reply));
        if (response !== undefined) sendResponse(door, reply, response);
      } catch (error) {
        if (hasNoEntry) noteTurnedAway(deps.audit, request, { action: route.name, error: toAppError(error) });
        // Fastify ignores a hijacked reply, and its reader would wait forever.
        if (!reply.raw.headersSent) throw error;
        sendProblem(door, reply, error);
      }
      return reply;
    },
  });
}

interface Admitted {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  /** This node answers the request. */
  readonly done: () => void;
}

/** Forwards an admitted request to the node of the route, before its body is read. */
function passOn({ door, forward }: EdgeDeps, route: Route, { request, reply, done }: Admitted): void {
  const { host, protocol } = request;
  const incoming = {
    exchange: request,
    origin: 'api',
    calledAs: { host: host ?? '', isSecure: protocol === 'https' },
    isOptional: route.livesOn === 'host-or-any',
  } as const;
  door.identify(request, reply.raw, request.principal);
  (forward as Forward).pass(incoming, reply.raw).then(
    (isPassed) => {
      if (isPassed) reply.hijack();
      else if (incoming.isOptional) done();
      else sendProblem(door, reply, hostUnreachable());
    },
    (error) => sendProblem(door, reply, error),
  );
}

/** Throws `unsupported_media_type` for a form where JSON is expected, before the body is read. */
function assertNoForm(type: string | undefined): void {
  if (/^multipart\//i.test(type ?? '')) throw notJson(type);
}
