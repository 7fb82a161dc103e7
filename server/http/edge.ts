/**
 * The HTTP edge: mounts declared routes on Fastify. A request goes through, in this order: request id →
 * credentials → rate limit → permission → end of the event loop's turn → body → validation → idempotency →
 * handler → answer or problem. No rules live here.
 */
import { isIP, type Socket } from 'node:net';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { Idempotency } from '../calls/idempotency.ts';
import type { Operations } from '../calls/operations.ts';
import { NOBODY, type Permission, type Principal, permits } from '../calls/principal.ts';
import type { Clock } from '../platform/clock.ts';
import { detachBuffer } from '../platform/detach-buffer.ts';
import { AppError } from '../platform/errors.ts';
import { newId } from '../platform/ids.ts';
import { JSON_MAX_BYTES, parseJson } from '../platform/json.ts';
import type { Meters } from '../platform/prometheus.ts';
import { endOfTick } from '../platform/tick.ts';
import type { BodyRoom } from './body-room.ts';
import type { ConsoleFiles } from './console-files.ts';
import { allowOrigin, answersPreflight, type CorsRules } from './cors.ts';
import { carriesKey, type IdentifyDeps, identify } from './credentials.ts';
import { handleRoute } from './handle.ts';
import { hostCheck } from './host-check.ts';
import { announcesBody, assertMultipart, assertNoForm, assertNotEncoded, notJson } from './media-type.ts';
import { PROBLEM_TYPE, problemHeaders, toAppError, toProblem } from './problem.ts';
import { addressKey, type CallerLimits, type RateLimiter } from './rate-limit.ts';
import { dropRest, readBody } from './read-body.ts';
import type { Route } from './route.ts';
import { lineOf, type RouteResponse } from './route.ts';
import { freePaths, unknownPath } from './unknown-path.ts';
import type { UnreadResponses } from './unread-responses.ts';

export interface EdgeDeps extends IdentifyDeps {
  readonly clock: Clock;
  readonly log: Logger;
  readonly meters: Meters;
  readonly idempotency: Idempotency;
  readonly operations: Operations;
  /** null: no limit on this origin. */
  readonly limiter: CallerLimits | null;
  /** A further limit for some routes, by operation name. */
  readonly routeLimiters: ReadonlyMap<string, RateLimiter>;
  readonly routes: readonly Route[];
  /** Headers of every response. */
  readonly headers: Readonly<Record<string, string>>;
  readonly trustedProxies: readonly string[];
  /** Other sites whose scripts may read the answers; null: none. */
  readonly cors?: CorsRules | null;
  /** Names that a `Host` may have while the server listens on loopback only, besides its own. */
  readonly hostNames?: readonly string[];
  readonly unread?: UnreadResponses;
  /** Where bodies of JSON are counted. */
  readonly bodies: BodyRoom;
  /** See ConnectionGuard.isReserve. */
  readonly isReserve?: (socket: Socket) => boolean;
  /** See OwnAddresses.answer. */
  readonly called?: <T>(request: FastifyRequest, work: () => T) => T;
  /** Answers requests that no route answers. */
  readonly pages?: Pick<ConsoleFiles, 'answer'>;
}

declare module 'fastify' {
  interface FastifyRequest {
    principal: Principal;
    /** Headers collected for the response, whichever way it is sent. */
    responseHeaders: Record<string, string>;
    startedAt: number;
    /** The caller's address when the request came; `ip` is lost when the connection closes. */
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
  const checkHost = hostCheck(app.server, deps.hostNames ?? []);
  const called = deps.called ?? here;
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
      if (isFree(request.url) && called(request, () => deps.pages?.answer(request, reply))) return;
      sendProblem(deps, reply, unknownPath(deps.routes, request.method, request.url));
    } catch (error) {
      sendProblem(deps, reply, error);
    }
  });
  app.setErrorHandler((error, _request, reply) => sendProblem(deps, reply, error));
  return app;
}

const here = <T>(_request: FastifyRequest, work: () => T): T => work();

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

function noRoom(): AppError {
  return new AppError('overloaded', 'Too many connections are open', { retryAfterSeconds: 2 });
}

/** What a trusted proxy forwards counts when it is an address; its own does otherwise. */
function addressOf({ ip, raw }: FastifyRequest): string {
  return isIP(ip) === 0 ? (raw.socket.remoteAddress ?? '') : ip;
}

function acceptBodies(app: FastifyInstance, room: BodyRoom): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    assertNotEncoded(request.headers);
    const { accountId } = request.principal;
    const maxBytes = request.routeOptions.bodyLimit ?? JSON_MAX_BYTES;
    const bytes = await readBody(request, { room, accountId, maxBytes, tooLarge: () => tooLarge(maxBytes) });
    const body = parseJson(bytes);
    detachBuffer(bytes);
    return body;
  });
  // The handler reads a form as a stream.
  app.addContentTypeParser('multipart/form-data', (_request, _payload, done) => done(null));
  // Without a body every type is accepted: `curl -X POST -d ''` sends one.
  app.addContentTypeParser('*', ({ headers }, _payload, done) =>
    done(announcesBody(headers) ? notJson(headers['content-type']) : null),
  );
}

function tooLarge(maxBytes: number): AppError {
  return new AppError('payload_too_large', `The body is larger than ${Math.floor(maxBytes / 1024)} KiB`);
}

function mount(app: FastifyInstance, deps: EdgeDeps, route: Route): void {
  const onFailure = (error: AppError, requestId: string) => logFailure(deps, error, requestId);
  const handle = handleRoute(route, { ...deps, onFailure });
  const called = deps.called ?? here;
  const gate = (request: FastifyRequest) => admit(deps, route, request);
  const methods = route.method === 'GET' ? ['GET', 'HEAD'] : [route.method];
  app.route({
    method: methods,
    url: route.path.replace(/\{(\w+)\}/g, ':$1'),
    bodyLimit: route.maxBodyBytes ?? JSON_MAX_BYTES,
    onRequest: (request, reply, done) => {
      // `/api/buckets/` is no bucket without a name.
      if (Object.values(request.params as object).includes('')) {
        sendProblem(deps, reply, unknownPath(deps.routes, request.method, request.url));
        return;
      }
      request.routeName = route.name;
      if (route.usesReserve !== true && deps.isReserve?.(request.raw.socket)) {
        sendProblem(deps, reply, noRoom());
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
      try {
        const response = await called(request, () => handle(request, reply));
        if (response !== undefined) sendResponse(deps, reply, response);
      } catch (error) {
        // Fastify leaves a reply that was taken over alone, and its reader would wait for ever.
        if (!reply.raw.headersSent) throw error;
        sendProblem(deps, reply, error);
      }
      return reply;
    },
  });
}

/** Who, how often, and may they. Synchronous when the key is known already. */
function admit(deps: EdgeDeps, route: Route, request: FastifyRequest): Promise<void> | undefined {
  if (route.permission === 'public' && route.knowsCaller !== true) {
    limit(deps, route, request);
    return undefined;
  }
  let found: ReturnType<typeof identify>;
  try {
    const byLink = route.acceptsLink?.(request) === true && !carriesKey(request.raw);
    found = byLink ? NOBODY : identify(request.raw, deps);
  } catch (error) {
    limit(deps, route, request);
    throw error;
  }
  if (!(found instanceof Promise)) {
    request.principal = found;
    enter(deps, route, request);
    return undefined;
  }
  return found.then(
    (principal) => {
      request.principal = principal;
      enter(deps, route, request);
    },
    (error) => {
      limit(deps, route, request);
      throw error;
    },
  );
}

function enter(deps: EdgeDeps, route: Route, request: FastifyRequest): void {
  const { principal } = request;
  limit(deps, route, request);
  if (principal.via === 'nobody' && route.acceptsLink?.(request)) return;
  assertPermitted(principal, route.permission);
}

function limit(deps: EdgeDeps, route: Route, request: FastifyRequest): void {
  if (deps.limiter === null || request.principal.via === 'control') return;
  deps.limiter.take(request, request.responseHeaders);
  deps.routeLimiters.get(route.name)?.take(addressKey(request.address), request.responseHeaders);
}

/** Throws `missing_api_key`, `admin_required` or `scope_required` unless the principal may. */
export function assertPermitted(principal: Principal, permission: Permission): void {
  if (permits(principal, permission)) return;
  if (principal.via === 'nobody') {
    throw new AppError('missing_api_key', 'This call needs an API key', {
      hint: 'Send it as X-API-Key: <key> or Authorization: Bearer <key>',
    });
  }
  if (permission === 'admin') throw new AppError('admin_required', "This call needs an administrator's key");
  throw new AppError('scope_required', `This key lacks the scope ${permission}`);
}

/** Past Fastify, whose hooks and serializers are not used here and cost a twentieth of a small request. */
function sendResponse({ unread }: EdgeDeps, reply: FastifyReply, response: RouteResponse): void {
  const { principal, responseHeaders } = reply.request;
  const body = lineOf(response);
  const bytes = Buffer.byteLength(body);
  // Callers without a credential get the same few texts, which take no memory each.
  if (principal.via !== 'nobody') unread?.add(principal.accountId, bytes, reply.raw);
  responseHeaders['content-type'] = response.contentType;
  responseHeaders['content-length'] = String(bytes);
  reply.hijack();
  reply.raw.writeHead(response.status, responseHeaders);
  reply.raw.end(body);
}

/** Logs errors that are the server's own fault. */
function logFailure({ log }: EdgeDeps, error: AppError, requestId: string): void {
  if (error.code !== 'internal_error' && error.code !== 'data_corrupted') return;
  log.error({ request_id: requestId, err: error.cause ?? error }, error.message);
}

function sendProblem(deps: EdgeDeps, reply: FastifyReply, thrown: unknown): void {
  const { request } = reply;
  const error = toAppError(thrown);
  logFailure(deps, error, request.id);
  if (reply.raw.headersSent) {
    // Too late for words: a cut connection is the only honest end of a half-sent body.
    reply.raw.destroy();
    return;
  }
  const problem = toProblem(error, request.id);
  reply.headers({ ...request.responseHeaders, ...problemHeaders(error), 'content-type': PROBLEM_TYPE });
  keepOpen(request, reply);
  reply.code(problem.status).send(`${JSON.stringify(problem)}\n`);
}

/**
 * Fastify would close at once after a body that it could not read; that a stop ends the connection stays
 * said. Without such a header there is nothing to remove: it would take Node's own away, and the head would
 * tell whether the body had come by then.
 */
function keepOpen(request: FastifyRequest, reply: FastifyReply): void {
  const bodyComes = !request.raw.complete && announcesBody(request.headers);
  const isStopping = reply.raw.hasHeader('connection');
  if (reply.hasHeader('connection') && (bodyComes || !isStopping)) reply.removeHeader('connection');
  if (bodyComes) dropRest(request.raw);
}

/** 500 is a fault of ours; what else is refused with 5xx, such as 503, was foreseen and says its fix. */
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
