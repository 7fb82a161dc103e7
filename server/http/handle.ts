/** From a declared route to a function that answers one request. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FieldProblem } from '../platform/errors.ts';
import { type AsyncOperationsDeps, prefersAsync, respondAsync } from './async-operations.ts';
import { type OnceInput, once, type Retry, withoutKey } from './once.ts';
import { ACCEPTED } from './operation-view.ts';
import {
  JSON_TYPE,
  mayRespondAsync,
  type Route,
  type RouteResponse,
  statusOf,
  takesIdempotencyKey,
} from './route.ts';
import { unknownMembers } from './unknown-members.ts';
import { bodyCheck, textCheck, withUnknown } from './validate.ts';

const CONTENT_TYPES = {
  json: JSON_TYPE,
  html: 'text/html; charset=utf-8',
  text: 'text/plain; charset=utf-8',
} as const;

type HandleDeps = AsyncOperationsDeps & Pick<OnceInput, 'idempotency'>;
type Handle = (request: FastifyRequest, reply: FastifyReply) => Promise<RouteResponse | undefined>;

interface Asked {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly isAsync: boolean;
  /** What the call does not know, and refuses. */
  readonly unknown: readonly FieldProblem[];
}

/** Answers undefined when the handler has sent, or is sending, the response itself. */
export function handleRoute(route: Route, deps: HandleDeps): Handle {
  const checkParams = textCheck(route.params);
  const checkQuery = textCheck(route.query);
  const checkBody = route.consumes === 'multipart' ? () => undefined : bodyCheck(route.body, route.rules);
  const status = statusOf(route);
  const produces = route.produces ?? 'json';
  const mayBeAsync = mayRespondAsync(route);
  const findUnknown = unknownMembers(route);

  const run = async ({ request, reply, isAsync, unknown }: Asked, retry: Retry) => {
    const { principal } = request;
    const checked = withUnknown(unknown, () => ({
      params: checkParams(request.params),
      query: checkQuery(request.query),
      body: checkBody(request.body),
    }));
    const input = Object.assign({ principal, request, reply }, checked, retry);
    if (isAsync) return respondAsync(route, deps, input);
    const result = await route.handler(input);
    // Handlers that answer in more than one form send the others themselves.
    if (produces === 'bytes' || reply.sent) return undefined;
    if (produces === 'list') return streamList(request, reply, result as AsyncIterable<string>);
    const text = produces === 'json' ? JSON.stringify(result) : String(result);
    return { status, contentType: CONTENT_TYPES[produces], body: text };
  };

  return async (request, reply) => {
    const isAsync = mayBeAsync && prefersAsync(request);
    // A replayed response tells of them too.
    const asked = { request, reply, isAsync, unknown: findUnknown(request) };
    const key = takesIdempotencyKey(route) ? request.headers['idempotency-key'] : undefined;
    if (key === undefined) return run(asked, withoutKey());
    const { idempotency } = deps;
    return once({ idempotency, route, status: isAsync ? ACCEPTED : status, key, request }, (retry) =>
      run(asked, retry),
    );
  };
}

const FLUSH_CHARACTERS = 64 * 1024;

/**
 * `entries` yields JSON texts. The first is awaited before the head is sent, so that an error found at
 * once is still a proper problem; a later one cuts the connection. Resolves undefined: the response is sent.
 */
export async function streamList(
  request: FastifyRequest,
  reply: FastifyReply,
  entries: AsyncIterable<string>,
): Promise<undefined> {
  const iterator = entries[Symbol.asyncIterator]();
  let next = await iterator.next();
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, { ...request.responseHeaders, 'content-type': JSON_TYPE });
  try {
    if (request.method === 'HEAD') {
      raw.end();
      return undefined;
    }
    let text = '[';
    let separator = '';
    while (!next.done) {
      text += separator + next.value;
      separator = ',';
      if (text.length >= FLUSH_CHARACTERS) {
        const ready = raw.write(text);
        text = '';
        if (!ready) await drained(raw);
      }
      if (raw.destroyed) return undefined;
      next = await iterator.next();
    }
    raw.end(`${text}]\n`);
  } catch (error) {
    raw.destroy(error as Error);
  } finally {
    await iterator.return?.();
  }
  return undefined;
}

/** Resolves when the response can take more, or is closed. */
function drained(raw: FastifyReply['raw']): Promise<void> {
  return new Promise((resolve) => {
    // Closed while the next entry was awaited: neither event will come any more.
    if (raw.destroyed) return resolve();
    const done = () => {
      raw.off('drain', done);
      raw.off('close', done);
      resolve();
    };
    raw.on('drain', done);
    raw.on('close', done);
  });
}
