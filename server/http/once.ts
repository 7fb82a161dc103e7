/** Runs a change at most once per Idempotency-Key (decisions/0005). */
import { createHash } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import type { Attempt, Idempotency, StoredResponse } from '../calls/idempotency.ts';
import type { Recorder } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';
import { AppError, ERRORS, type ErrorCode, isAppError } from '../platform/errors.ts';
import { ACCEPTED, operationHeaders } from './operation-view.ts';
import { PROBLEM_TYPE, toProblem } from './problem.ts';
import type { Route, RouteInput } from './route.ts';
import { JSON_TYPE, type RouteResponse } from './route.ts';

/** What a handler can do with the Idempotency-Key of its request. */
export interface Retry extends Pick<RouteInput<unknown, unknown, unknown>, 'record' | 'identify'> {
  /** Forgets the response that `record` stored: the same request may be made again. */
  readonly withdraw: () => readonly Statement[];
}

const NOTHING = { identify: () => {}, withdraw: () => [] };

/** For a request without a key. Each request needs an object of its own: see Changes.run(). */
export function withoutKey(): Retry {
  return { ...NOTHING, record: () => [] };
}

/** Thrown by `identify` when the response is known already; caught below. */
class Replay extends Error {
  readonly stored: StoredResponse;
  constructor(stored: StoredResponse) {
    super('replay');
    this.stored = stored;
  }
}

export interface OnceInput {
  readonly idempotency: Idempotency;
  readonly route: Route;
  /** The status of the response, when there is no failure. */
  readonly status: number;
  readonly key: string | string[];
  readonly request: FastifyRequest;
}

/** An earlier response is replayed, a running request with the key refuses. */
export async function once(
  { idempotency, route, status, key, request }: OnceInput,
  run: (retry: Retry) => Promise<RouteResponse | undefined>,
): Promise<RouteResponse | undefined> {
  const { principal: caller, address } = request;
  const attempt = await idempotency.begin({ caller, address, route: route.name, key: keyOf(key) });
  const where = request.url.split('?', 1)[0] ?? '';
  const identify = (content: unknown) => {
    const text = JSON.stringify(content) ?? '';
    const fingerprint = createHash('sha256').update(`${where}\n${text}`).digest('hex');
    const stored = attempt.bindRequest(fingerprint);
    if (stored) throw new Replay(stored);
  };
  const record: Recorder['record'] = (response) => attempt.record({ status, body: JSON.stringify(response) });
  try {
    if (route.consumes !== 'multipart') identify(request.body);
    const response = await run({ identify, record, withdraw: () => attempt.withdraw() });
    if (response) await attempt.complete(response);
    return response;
  } catch (error) {
    if (error instanceof Replay) return replay(request, error.stored);
    // Refusals of callers without a credential are not kept: anybody could fill the table with them.
    const isKept = caller.via !== 'nobody' && isAppError(error) && isDecision(error);
    if (isKept) await keepRefusal(attempt, error, request.id);
    throw error;
  } finally {
    attempt.end();
  }
}

function replay({ responseHeaders }: FastifyRequest, { status, body }: StoredResponse): RouteResponse {
  responseHeaders['idempotent-replayed'] = 'true';
  if (status === ACCEPTED) Object.assign(responseHeaders, operationHeaders(JSON.parse(body).operation_id));
  return { status, contentType: status < 400 ? JSON_TYPE : PROBLEM_TYPE, body };
}

/** Refusals that may end by themselves, so that a retry may succeed. */
const TRANSIENT: ReadonlySet<ErrorCode> = new Set([
  'write_conflict',
  'idempotency_in_flight',
  'idempotency_mismatch',
  'job_running',
  'vm_locked',
  'image_not_ready',
  'vm_invalid_state',
  'database_not_ready',
  'point_in_progress',
  'point_invalid_state',
  'target_in_use',
]);

/**
 * True for what the domain decided, which may come out differently later. Malformed input is the same each
 * time and may be corrected under its key; who may not at all never got this far.
 */
export function isDecision({ code }: AppError): boolean {
  const { http } = ERRORS[code];
  return [402, 403, 404, 409, 412].includes(http) && !TRANSIENT.has(code);
}

async function keepRefusal(attempt: Attempt, refusal: AppError, requestId: string): Promise<void> {
  if (!attempt.isBound) return; // an upload that was refused before it was read
  const problem = toProblem(refusal, requestId);
  try {
    await attempt.refuse({ status: problem.status, body: JSON.stringify(problem) });
  } catch {
    // Nothing had an effect, so the caller learns of the refusal and not of the disk.
  }
}

function keyOf(key: string | string[]): string {
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new AppError('invalid_request', 'Idempotency-Key must be 1 to 255 visible ASCII characters');
}
