/**
 * Serves libSQL drivers of SQLite databases: Hrana over HTTP on the data origin, under
 * `/db/<database_id>/`, with the database's password as bearer token. Bodies are passed through:
 * the process with the open database reads and writes them. Drivers build paths in two ways. Those
 * that resolve `v2/pipeline` against `…/db/<database_id>` lose the id, so that the password alone
 * identifies the database; those that append leave `//`. hrana-sockets.ts does the same over
 * WebSocket.
 */
import { pipeline } from 'node:stream/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { EngineDatabase } from '../databases/engine.ts';
import type { HranaCalls, HranaReply } from '../databases/hrana-calls.ts';
import type { Egress } from '../databases/life/egress.ts';
import { announcesBody, dropRest, readBody } from '../http/bodies/body.ts';
import type { BodyMemory } from '../http/bodies/body-memory.ts';
import { type Door, ownResponse, type Sender } from '../http/exchange.ts';
import { problemHeaders, toAppError, toProblem } from '../http/response.ts';
import { Counts, endOfTick } from '../platform/concurrency.ts';
import { AppError, isAppError } from '../platform/errors.ts';

export interface HranaEdgeDeps {
  readonly log: Logger;
  readonly databases: HranaCalls & {
    /** See Logins.find(). */
    find(databaseId: string | null, password: string): Promise<EngineDatabase>;
    readonly egress: Pick<Egress, 'count' | 'counted'>;
  };
  /** Maximum concurrent calls of one database, including those whose body is still arriving. */
  readonly maxCalls: number;
  readonly maxBodyBytes: number;
  /** Maximum WebSockets of all databases. */
  readonly maxSockets: number;
  /** Maximum WebSockets that have not logged in; default: 1,024. */
  readonly maxUnauthenticated?: number;
  readonly bodies: BodyMemory;
  /** Shared with the server's other requests. */
  readonly door: Door;
}

declare module 'fastify' {
  interface FastifyRequest {
    hranaCall: { readonly database: EngineDatabase; readonly path: string } | null;
  }
}

/** The calls of the protocol, with their names in metrics. */
const CALLS: ReadonlyMap<string, string> = new Map([
  ['v2/pipeline', 'hranaPipeline'],
  ['v3/pipeline', 'hranaPipeline'],
  ['v3/cursor', 'hranaCursor'],
  ['v3-protobuf/pipeline', 'hranaPipeline'],
  ['v3-protobuf/cursor', 'hranaCursor'],
]);
const VERSIONS: ReadonlySet<string> = new Set(['v2', 'v3', 'v3-protobuf']);

export class HranaEdge {
  readonly #deps: HranaEdgeDeps;
  readonly #underWay = new Counts<string>();

  constructor(deps: HranaEdgeDeps) {
    this.#deps = deps;
  }

  /** Adds the routes to a server that does not listen yet. */
  serve(app: FastifyInstance): void {
    app.register(async (scope) => {
      scope.decorateRequest('hranaCall', null);
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', (request: FastifyRequest) => this.#read(request));
      scope.setErrorHandler((error, request, reply) => this.#refuse(request, reply, error));
      scope.route({
        method: ['GET', 'POST'],
        url: '/db/*',
        bodyLimit: this.#deps.maxBodyBytes,
        onRequest: async (request, reply) => {
          const { databaseId, path } = databaseOf(request.url);
          if (request.method === 'GET') this.#answerVersion(path, request, reply);
          else await this.#admit({ databaseId, path }, { request, reply });
        },
        handler: async (request, reply) => {
          const { hranaCall } = request;
          if (hranaCall !== null) await this.#pass(hranaCall.database, hranaCall.path, { request, reply });
          return reply;
        },
      });
    });
  }

  #answerVersion(path: string, request: FastifyRequest, reply: FastifyReply): void {
    request.routeName = 'hranaVersion';
    if (!VERSIONS.has(path)) throw nothingAt(path);
    send(request, reply, { status: 200, body: Buffer.from(`{"version":"${path}"}\n`) });
  }

  async #admit({ databaseId, path }: Target, { request, reply }: Visit): Promise<void> {
    const name = CALLS.get(path);
    if (name === undefined) throw nothingAt(path);
    request.routeName = name;
    const database = await this.#find(databaseId, request);
    this.#begin(database, reply);
    request.hranaCall = { database, path };
    await endOfTick();
  }

  async #find(databaseId: string | null, request: FastifyRequest): Promise<EngineDatabase> {
    try {
      return await this.#deps.databases.find(databaseId, passwordOf(request));
    } catch (error) {
      limitGuess(this.#deps.door, request, error);
      throw error;
    }
  }

  /** Counts a call until it ends. */
  #begin({ databaseId, accountId }: EngineDatabase, reply: FastifyReply): void {
    ownResponse(reply.raw, accountId);
    const { maxCalls } = this.#deps;
    if (this.#underWay.of(databaseId) >= maxCalls) throw tooMany(maxCalls);
    if (!reply.raw.destroyed) reply.raw.once('close', this.#underWay.add(databaseId));
  }

  #read(request: FastifyRequest): Promise<Buffer> {
    const { bodies: memory, maxBodyBytes: maxBytes } = this.#deps;
    const accountId = request.hranaCall?.database.accountId ?? 0;
    return readBody(request, { memory, accountId, maxBytes, tooLarge: () => tooLarge(maxBytes) });
  }

  async #pass(database: EngineDatabase, path: string, { request, reply }: Visit): Promise<void> {
    const left = new AbortController();
    const leave = () => left.abort();
    reply.raw.once('close', leave);
    try {
      const body = (request.body as Buffer | undefined) ?? NO_BODY;
      const response = await this.#deps.databases.exchange(database, { path, body, signal: left.signal });
      if (!reply.raw.destroyed) await this.#send(database, response, { request, reply });
    } finally {
      reply.raw.off('close', leave);
    }
  }

  async #send(
    { databaseId, accountId }: EngineDatabase,
    { status, contentType, body }: HranaReply,
    { request, reply }: Visit,
  ): Promise<void> {
    const { egress } = this.#deps.databases;
    if (body instanceof Uint8Array) {
      this.#deps.door.countUnread(body.length, reply.raw, accountId);
      egress.count(databaseId, body.length);
      send(request, reply, { status, body, contentType });
      return;
    }
    request.responseHeaders['content-type'] = contentType;
    request.responseHeaders['cache-control'] = 'no-store';
    reply.hijack();
    reply.raw.writeHead(status, request.responseHeaders);
    // A reader notices that a truncated response is incomplete.
    await pipeline(egress.counted(databaseId, body), reply.raw).catch(() => {});
  }

  /**
   * Sends an error with the members that drivers read (`message`, `code`) and those of our problem details.
   */
  #refuse(request: FastifyRequest, reply: FastifyReply, thrown: unknown): void {
    const error = toAppError(thrown);
    const refuse = () => {
      const problem = toProblem(error, request.id);
      Object.assign(request.responseHeaders, problemHeaders(error));
      const message = error.hint === undefined ? error.message : `${error.message}. ${error.hint}`;
      const body = Buffer.from(`${JSON.stringify({ ...problem, message })}\n`);
      const bodyComes = !request.raw.complete && announcesBody(request.headers);
      send(request, reply, { status: problem.status, body });
      if (bodyComes) dropRest(request.raw);
    };
    this.#deps.door.refuse(request, reply.raw, { error, send: refuse });
  }
}

/** Passwords are guessed at the rate of requests without a key. Throws `rate_limited`. */
export function limitGuess(door: Door, sender: Sender, error: unknown): void {
  if (isAppError(error, 'invalid_database_password')) door.limit(sender);
}

interface Visit {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

interface Target {
  readonly databaseId: string | null;
  readonly path: string;
}

/**
 * The database and path of `/db/<database_id>/v2/pipeline` or `/db/v2/pipeline`, with any number of slashes.
 */
export function databaseOf(url: string): Target {
  const [path = ''] = url.split('?', 1);
  const [, first = '', ...rest] = path.split('/').filter((segment) => segment !== '');
  if (first.startsWith('db-')) return { databaseId: first, path: rest.join('/') };
  return { databaseId: null, path: [first, ...rest].join('/') };
}

function passwordOf({ headers }: FastifyRequest): string {
  const [, password] = /^Bearer +(\S+) *$/i.exec(headers.authorization ?? '') ?? [];
  if (password !== undefined) return password;
  throw new AppError('invalid_database_password', 'The database password is missing', {
    hint: 'Send the password as Authorization: Bearer <password>; drivers call it authToken',
  });
}

/** Drivers recognize errors only with exactly this type. */
const JSON_TYPE = 'application/json';
const NO_BODY = Buffer.alloc(0);

/** Bypasses Fastify, as http/edge.ts does. */
function send(
  request: FastifyRequest,
  reply: FastifyReply,
  { status, body, contentType = JSON_TYPE }: { status: number; body: Uint8Array; contentType?: string },
): void {
  const { responseHeaders } = request;
  responseHeaders['content-type'] = contentType;
  responseHeaders['content-length'] = String(body.length);
  responseHeaders['cache-control'] = 'no-store';
  reply.hijack();
  reply.raw.writeHead(status, responseHeaders);
  reply.raw.end(body);
}

function tooLarge(maxBytes: number): AppError {
  const mebibytes = Math.floor(maxBytes / 2 ** 20);
  return new AppError('payload_too_large', `A call to a database can have at most ${mebibytes} MiB`, {
    hint: 'Send the rows in several calls',
  });
}

function nothingAt(path: string): AppError {
  return new AppError(
    'not_found',
    `Not found: ${path === '' ? 'a database has no page at its address' : `a database has no ${path}`}`,
    {
      hint: 'Connect a libSQL driver to /db/<database_id>/ with the password as authToken',
    },
  );
}

function tooMany(max: number): AppError {
  return new AppError('overloaded', `${max} calls to this database are already running`, {
    retryAfterSeconds: 1,
  });
}
