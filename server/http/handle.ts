/** From a declared route to a function that answers one request. */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError, ERRORS, type ErrorCode, isAppError } from '../errors.ts';
import { noReceipt, type Receipt } from '../metadata/receipt.ts';
import type { Attempt, Idempotency, StoredAnswer } from '../system/idempotency.ts';
import type { Operation, Operations } from '../system/operations.ts';
import { presentOperation } from './operation-view.ts';
import { PROBLEM_TYPE, toAppError, toProblem } from './problem.ts';
import { mayAnswerLater, type Route, type RouteInput, takesIdempotencyKey } from './route.ts';
import { streamList } from './stream-list.ts';
import { bodyCheck, textCheck } from './validate.ts';

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

const JSON_TYPE = 'application/json; charset=utf-8';
const CONTENT_TYPES = {
  json: JSON_TYPE,
  html: 'text/html; charset=utf-8',
  text: 'text/plain; charset=utf-8',
} as const;

export interface HandleDeps {
  readonly idempotency: Idempotency;
  readonly operations: Operations;
  /** Told of a failure that its caller does not see here. */
  readonly onFailure: (error: AppError, requestId: string) => void;
}

type Input = RouteInput<unknown, unknown, unknown>;
type Handle = (request: FastifyRequest, reply: FastifyReply) => Promise<Answer | undefined>;

/** Thrown by `identify` when the answer is known already; caught below. */
class Replay extends Error {
  readonly stored: StoredAnswer;
  constructor(stored: StoredAnswer) {
    super('replay');
    this.stored = stored;
  }
}

/** undefined: the handler has sent, or is sending, the response itself. */
export function handleRoute(route: Route, deps: HandleDeps): Handle {
  const checkParams = textCheck(route.params, 'path');
  const checkQuery = textCheck(route.query, 'query');
  const checkBody = route.consumes === 'multipart' ? () => undefined : bodyCheck(route.body, route.rules);
  const status = statusOf(route);
  const produces = route.produces ?? 'json';
  const mayBeLater = mayAnswerLater(route);

  const run = async (input: Omit<Input, 'params' | 'query' | 'body'>) => {
    const { request, reply } = input;
    const params = checkParams(request.params);
    const query = checkQuery(request.query);
    const body = checkBody(request.body);
    const checked = { ...input, params, query, body };
    if (mayBeLater && prefersLater(request)) return answerLater(route, deps, checked);
    const result = await route.handler(checked);
    // Some answer in more than one form, and send the others themselves.
    if (produces === 'bytes' || reply.sent) return undefined;
    if (produces === 'list') return streamList(request, reply, result as AsyncIterable<string>);
    const text = produces === 'json' ? JSON.stringify(result) : String(result);
    return { status, contentType: CONTENT_TYPES[produces], body: text };
  };

  return async (request, reply) => {
    const key = takesIdempotencyKey(route) ? request.headers['idempotency-key'] : undefined;
    const { principal } = request;
    if (key === undefined) {
      return run({ principal, request, reply, receipt: noReceipt, identify: () => {} });
    }
    const first = mayBeLater && prefersLater(request) ? LATER : status;
    return once({ ...deps, route, status: first, key: requireKey(key), request }, (retry) =>
      run({ principal, request, reply, ...retry }),
    );
  };
}

/** The status that a returned value is sent with. */
function statusOf(route: Route): number {
  return Number(Object.keys(route.responses)[0]);
}

const LATER = 202;

/** RFC 7240 §4.1. The operator on the machine has no account that an operation could belong to. */
function prefersLater({ headers: { prefer }, principal }: FastifyRequest): boolean {
  if (prefer === undefined || principal.accountId === 0) return false;
  return /(?:^|,)\s*respond-async\s*(?:[;,]|$)/i.test(String(prefer));
}

/** Takes the call and answers with the operation; what is checked without the domain was checked before. */
async function answerLater(route: Route, deps: HandleDeps, input: Input): Promise<Answer> {
  const { principal, request, receipt } = input;
  const view = (operation: Operation) => presentOperation(operation, request.id);
  const pending = await deps.operations.begin(principal, route.name, (operation) => receipt(view(operation)));
  const status = statusOf(route);
  const answerOf = (result: unknown) => ({ status, body: JSON.stringify(result) });
  void pending.run(async () => {
    try {
      return answerOf(
        await route.handler({ ...input, receipt: (answer) => pending.receipt(answerOf(answer)) }),
      );
    } catch (thrown) {
      const error = toAppError(thrown);
      deps.onFailure(error, request.id);
      const problem = toProblem(error, request.id);
      return { status: problem.status, body: JSON.stringify(problem) };
    }
  });
  request.answerHeaders.location = `/api/operations/${pending.operation.operationId}`;
  request.answerHeaders['preference-applied'] = 'respond-async';
  return { status: LATER, contentType: JSON_TYPE, body: JSON.stringify(view(pending.operation)) };
}

interface OnceInput extends HandleDeps {
  readonly route: Route;
  readonly status: number;
  readonly key: string;
  readonly request: FastifyRequest;
}

/** Runs a POST at most once per Idempotency-Key: an earlier answer is replayed, a running one refuses. */
async function once(
  { idempotency, route, status, key, request }: OnceInput,
  run: (retry: Pick<Input, 'receipt' | 'identify'>) => Promise<Answer | undefined>,
): Promise<Answer | undefined> {
  const { principal } = request;
  const caller = principal.accountId === 0 ? `address:${request.ip}` : `account:${principal.accountId}`;
  const attempt = await idempotency.begin({ scope: `${caller} ${route.name}`, key });
  const where = request.url.split('?', 1)[0] ?? '';
  const identify = (content: unknown) => {
    const text = JSON.stringify(content) ?? '';
    const fingerprint = createHash('sha256').update(`${where}\n${text}`).digest('hex');
    const stored = attempt.settle(fingerprint);
    if (stored) throw new Replay(stored);
  };
  const receipt: Receipt = (answer) => attempt.receipt({ status, body: JSON.stringify(answer) });
  try {
    if (route.consumes !== 'multipart') identify(request.body);
    const answer = await run({ identify, receipt });
    if (answer) await attempt.complete(answer);
    return answer;
  } catch (error) {
    if (error instanceof Replay) {
      request.answerHeaders['idempotent-replayed'] = 'true';
      const { status, body } = error.stored;
      return { status, contentType: status < 400 ? JSON_TYPE : PROBLEM_TYPE, body };
    }
    if (isAppError(error) && isDecision(error)) await keepRefusal(attempt, error, request.id);
    throw error;
  } finally {
    attempt.end();
  }
}

/** Refusals that say "not now" or "not so", and not "no". */
const TRANSIENT: ReadonlySet<ErrorCode> = new Set([
  'write_conflict',
  'idempotency_in_flight',
  'idempotency_mismatch',
  'job_running',
  'vm_locked',
  'image_not_ready',
  'vm_invalid_state',
]);

/**
 * True for what the domain decided, which may come out differently later. Malformed input is the same each
 * time and may be corrected under its key; who may not at all never got this far.
 */
function isDecision({ code }: AppError): boolean {
  const { http } = ERRORS[code];
  return [402, 403, 404, 409, 412].includes(http) && !TRANSIENT.has(code);
}

async function keepRefusal(attempt: Attempt, refusal: AppError, requestId: string): Promise<void> {
  if (!attempt.isSettled) return; // an upload that was refused before it was read
  const problem = toProblem(refusal, requestId);
  try {
    await attempt.refuse({ status: problem.status, body: JSON.stringify(problem) });
  } catch {
    // Nothing had an effect, so the caller learns of the refusal and not of the disk.
  }
}

function requireKey(key: string | string[]): string {
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new AppError('invalid_request', 'Idempotency-Key must be 1 to 255 visible ASCII characters');
}

/** Throws `unsupported_media_type` unless the body is a form. Before the body is read. */
export function requireMultipart(request: FastifyRequest): void {
  const type = request.headers['content-type'] ?? '';
  if (!/^multipart\/form-data\s*;/i.test(type)) {
    throw new AppError('unsupported_media_type', 'The body must be multipart/form-data with a boundary');
  }
}
