/**
 * Turns a declared route into a function that handles one request: it checks the input, runs the handler at
 * most once per Idempotency-Key (decisions/0005), and responds early if the caller prefers that (`Prefer:
 * respond-async`, RFC 7240 §4.1; decisions/0016).
 */
import { createHash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AuditTrail } from '../calls/audit.ts';
import type { Attempt, Idempotency } from '../calls/idempotency.ts';
import type { StoredResponse } from '../calls/kept-answers.ts';
import type { Operation, Operations } from '../calls/operations.ts';
import { type Recorder, unfitTexts } from '../metadata/change.ts';
import type { Statement } from '../metadata/metadata.ts';
import { AppError, ERRORS, type ErrorCode, type FieldProblem, isAppError } from '../platform/errors.ts';
import { JsonText } from '../platform/json/json.ts';
import { AuditedCall, auditRuleOf, isQuiet } from './audited.ts';
import { dataAudit } from './exchange.ts';
import { PROBLEM_TYPE, streamList, toAppError, toProblem } from './response.ts';
import {
  JSON_TYPE,
  mayRespondAsync,
  type Route,
  type RouteInput,
  type RouteResponse,
  statusOf,
  takesIdempotencyKey,
} from './route.ts';
import { ACCEPTED, operationHeaders, presentOperation } from './routes/operation-routes.ts';
import { bodyCheck, textCheck, unknownMembers, withRefused } from './validate.ts';

const CONTENT_TYPES = {
  json: JSON_TYPE,
  html: 'text/html; charset=utf-8',
  text: 'text/plain; charset=utf-8',
} as const;

type HandleDeps = AsyncOperationsDeps &
  Pick<OnceInput, 'idempotency'> & {
    /** Default: nothing is kept. */
    readonly audit?: AuditTrail | undefined;
  };
type Handle = (request: FastifyRequest, reply: FastifyReply) => Promise<RouteResponse | undefined>;

interface Asked {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
  readonly isAsync: boolean;
  /** null: no entry is written. */
  readonly audited: AuditedCall | null;
  /** Unknown members that the call refuses, and texts that no call accepts. */
  readonly refused: readonly FieldProblem[];
}

/** Returns undefined if the handler has sent, or is sending, the response itself. */
export function handleRoute(route: Route, deps: HandleDeps): Handle {
  const checkParams = textCheck(route.params);
  const checkQuery = textCheck(route.query);
  const checkBody = route.consumes === 'multipart' ? () => undefined : bodyCheck(route.body, route.rules);
  const status = statusOf(route);
  const produces = route.produces ?? 'json';
  const mayBeAsync = mayRespondAsync(route);
  const takesKey = takesIdempotencyKey(route);
  const findUnknown = unknownMembers(route);

  const rule = auditRuleOf(route);
  const { audit } = deps;
  const isAudited = audit !== undefined && !isQuiet(rule);
  const ofData = audit !== undefined && rule.kind === 'data' ? audit : undefined;

  const run = async ({ request, reply, isAsync, audited, refused }: Asked, retry: Retry) => {
    const { principal } = request;
    const checked = withRefused(refused, () => ({
      params: checkParams(request.params),
      query: checkQuery(request.query),
      body: checkBody(request.body, refused.length > 0),
    }));
    const data = ofData && dataAudit(ofData, request, () => route.name);
    const { isSecretHidden } = request;
    const given = Object.assign({ principal, request, reply, data, isSecretHidden }, checked, retry);
    if (isAsync) return respondAsync(route, deps, { ...given, audited });
    const input =
      audited === null
        ? given
        : { ...given, record: audited.recorder(retry.record, status), entry: audited.first(status) };
    const result = await route.handler(input);
    await audited?.answered(status, result);
    // Handlers with several response types send the other types themselves.
    if (produces === 'bytes' || reply.sent) return undefined;
    if (produces === 'list') return streamList(request, reply, result as AsyncIterable<string>);
    const body = produces !== 'json' ? String(result) : isWritten(result) ? result : JSON.stringify(result);
    return { status, contentType: CONTENT_TYPES[produces], body };
  };

  return async (request, reply) => {
    const isRead = changesNothing(route, request.body);
    const isAsync = mayBeAsync && !isRead && prefersAsync(request);
    // A replayed response reports them too.
    const refused = [...findUnfit(route, request), ...findUnknown(request)];
    const audited = isAudited ? new AuditedCall(audit, route, rule, request) : null;
    const asked = { request, reply, isAsync, audited, refused };
    const key = takesKey ? request.headers['idempotency-key'] : undefined;
    const { idempotency } = deps;
    const call = { idempotency, route, status: isAsync ? ACCEPTED : status, request, isKept: !isRead };
    const answer = () =>
      key === undefined
        ? run(asked, withoutKey())
        : once({ ...call, key, audited }, (retry) => run(asked, retry));
    if (audited === null) return answer();
    try {
      return await answer();
    } catch (error) {
      audited.refused(toAppError(error));
      throw error;
    }
  };
}

function isWritten(result: unknown): result is JsonText {
  return result instanceof JsonText;
}

/** Texts that the metadata cannot store. */
function findUnfit({ takesNul = false }: Route, request: FastifyRequest): FieldProblem[] {
  const parts = [request.params, request.query, ...(takesNul ? [] : [request.body])];
  return parts.flatMap((part) => unfitTexts(part));
}

/** The Idempotency-Key operations available to a handler. */
export interface Retry extends Pick<RouteInput<unknown, unknown, unknown>, 'record' | 'identify'> {
  /** Deletes the response that `record` stored: the same request may be sent again. */
  readonly withdraw: () => readonly Statement[];
  /** Keeps the response of an accepted operation in memory while it runs; call the result at its end. */
  readonly accept: (response: StoredResponse) => () => void;
}

const NOTHING = { identify: () => {}, withdraw: () => [], accept: () => () => {} };

/** For a request without a key. Each request needs its own object: see Changes.run(). */
function withoutKey(): Retry {
  return { ...NOTHING, record: () => [] };
}

/** Thrown by `identify` if the response is stored already; caught below. */
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
  /** The status of the response if the call succeeds. */
  readonly status: number;
  readonly key: string | string[];
  readonly request: FastifyRequest;
  /** False: the call changes nothing, so it may be repeated and its response is not stored. */
  readonly isKept: boolean;
  readonly audited: AuditedCall | null;
}

/** Replays a stored response; refuses while a request with the key is running. */
async function once(
  { idempotency, route, status, key, request, isKept, audited }: OnceInput,
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
    const accept = attempt.accept.bind(attempt);
    const response = await run({ identify, record, accept, withdraw: () => attempt.withdraw() });
    const first = response && isKept ? await attempt.complete(storedOf(response)) : undefined;
    return first === undefined ? response : await replay(request, first, audited);
  } catch (error) {
    if (error instanceof Replay) return replay(request, error.stored, audited);
    // If two nodes received the same call, the later one is refused by the effect or by the record
    // of the first.
    const first = isKept ? await attempt.lookAgain() : undefined;
    if (first !== undefined) return replay(request, first, audited);
    // Refusals of callers without a credential are not stored: anyone could fill the table.
    const mayKeep = isKept && caller.via !== 'nobody';
    if (!mayKeep || !isAppError(error) || !isDecision(error)) throw error;
    const other = await keepRefusal(attempt, error, request.id);
    if (other === undefined) throw error;
    return replay(request, other, audited);
  } finally {
    attempt.end();
  }
}

function storedOf({ status, body }: RouteResponse): StoredResponse {
  return { status, body: String(body) };
}

async function replay(
  { responseHeaders }: FastifyRequest,
  { status, body }: StoredResponse,
  audited: AuditedCall | null,
): Promise<RouteResponse> {
  await audited?.replayed(status, body);
  responseHeaders['idempotent-replayed'] = 'true';
  if (status === ACCEPTED) Object.assign(responseHeaders, operationHeaders(JSON.parse(body).operation_id));
  return { status, contentType: status < 400 ? JSON_TYPE : PROBLEM_TYPE, body };
}

/** Temporary refusals, for which a retry may succeed. */
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
  'operation_cancelled',
]);

/**
 * True for decisions of the domain, which may differ later. Malformed input fails the same way each time and
 * may be corrected under its key; missing permissions are refused earlier.
 */
function isDecision({ code }: AppError): boolean {
  const { http } = ERRORS[code];
  return [402, 403, 404, 409, 412].includes(http) && !TRANSIENT.has(code);
}

/** The response came from another node, which was first. */
async function keepRefusal(
  attempt: Attempt,
  refusal: AppError,
  requestId: string,
): Promise<StoredResponse | undefined> {
  if (!attempt.isBound) return undefined; // an upload that was refused before it was read
  const problem = toProblem(refusal, requestId);
  try {
    return await attempt.refuse({ status: problem.status, body: JSON.stringify(problem) });
  } catch {
    // The call had no effect, so the caller gets the refusal instead of the disk error.
    return undefined;
  }
}

function keyOf(key: string | string[]): string {
  if (typeof key === 'string' && /^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw new AppError('invalid_request', 'Idempotency-Key must be 1 to 255 visible ASCII characters');
}

/** True if the caller asks for an operation. The operator on the host has no account to own one. */
export function prefersAsync({ headers: { prefer }, principal }: FastifyRequest): boolean {
  if (prefer === undefined || principal.accountId === 0) return false;
  return /(?:^|,)\s*respond-async\s*(?:[;,]|$)/i.test(String(prefer));
}

export interface AsyncOperationsDeps {
  readonly operations: Operations;
  /** Called with failures that are not in the response. */
  readonly onFailure: (error: AppError, requestId: string) => void;
}

type Input = RouteInput<unknown, unknown, unknown>;

/**
 * Accepts the call and responds with the operation; checks outside the domain ran before. Throws
 * the errors of Operations.begin.
 */
async function respondAsync(
  route: Route,
  { operations, onFailure }: AsyncOperationsDeps,
  { withdraw, accept, audited, ...input }: Input & Retry & Pick<Asked, 'audited'>,
): Promise<RouteResponse> {
  const { principal, request, record } = input;
  const view = (operation: Operation) => presentOperation(operation, request.id);
  const accepted = { name: route.name, isCancellable: route.isCancellable ?? false };
  const pending = await operations.begin(principal, accepted, (operation) => record(view(operation)));
  const status = statusOf(route);
  const responseOf = (result: unknown) => ({
    status,
    body: isWritten(result) ? String(result) : JSON.stringify(result),
  });
  const body = JSON.stringify(view(pending.operation));
  const letGo = accept({ status: ACCEPTED, body });
  const ended = pending.run(async () => {
    try {
      const { work } = pending;
      const effect = (response: unknown) => pending.record(responseOf(response));
      const record = audited?.recorder(effect, status) ?? effect;
      const own = { ...input, work, record, entry: audited?.first(status) };
      const result = await route.handler(own);
      await audited?.answered(status, result);
      return responseOf(result);
    } catch (thrown) {
      const error = toAppError(thrown);
      audited?.refused(error);
      onFailure(error, request.id);
      const problem = toProblem(error, request.id);
      // A temporary refusal may be retried with the same key, as without the preference.
      const also = isDecision(error) ? [] : withdraw();
      return { status: problem.status, body: JSON.stringify(problem), also };
    }
  });
  void ended.finally(letGo);
  Object.assign(request.responseHeaders, operationHeaders(pending.operation.operationId));
  return { status: ACCEPTED, contentType: JSON_TYPE, body };
}

/** True for a call that only reads. The body may be anything: it is not validated yet. */
function changesNothing({ changesNothing: says = () => false }: Route, body: unknown): boolean {
  if (says === true) return true;
  return typeof body === 'object' && body !== null && says(body);
}
