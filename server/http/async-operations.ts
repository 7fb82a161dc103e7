/** Answers a call before it has ended: `Prefer: respond-async` (RFC 7240 §4.1; decisions/0016). */
import type { FastifyRequest } from 'fastify';
import type { Operation, Operations } from '../calls/operations.ts';
import type { AppError } from '../platform/errors.ts';
import { isDecision, type Retry } from './once.ts';
import { ACCEPTED, operationHeaders, presentOperation } from './operation-view.ts';
import { toAppError, toProblem } from './problem.ts';
import { JSON_TYPE, type Route, type RouteInput, type RouteResponse, statusOf } from './route.ts';

/** True when the caller asks for an operation. The operator on the machine has no account to own one. */
export function prefersAsync({ headers: { prefer }, principal }: FastifyRequest): boolean {
  if (prefer === undefined || principal.accountId === 0) return false;
  return /(?:^|,)\s*respond-async\s*(?:[;,]|$)/i.test(String(prefer));
}

export interface AsyncOperationsDeps {
  readonly operations: Operations;
  /** Told of a failure that its caller does not see here. */
  readonly onFailure: (error: AppError, requestId: string) => void;
}

type Input = RouteInput<unknown, unknown, unknown>;

/**
 * Takes the call and answers with the operation; what is checked without the domain was checked before.
 * Throws what Operations.begin does.
 */
export async function respondAsync(
  route: Route,
  { operations, onFailure }: AsyncOperationsDeps,
  { withdraw, ...input }: Input & Retry,
): Promise<RouteResponse> {
  const { principal, request, record } = input;
  const view = (operation: Operation) => presentOperation(operation, request.id);
  const pending = await operations.begin(principal, route.name, (operation) => record(view(operation)));
  const status = statusOf(route);
  const responseOf = (result: unknown) => ({ status, body: JSON.stringify(result) });
  void pending.run(async () => {
    try {
      const own = { ...input, record: (response: unknown) => pending.record(responseOf(response)) };
      return responseOf(await route.handler(own));
    } catch (thrown) {
      const error = toAppError(thrown);
      onFailure(error, request.id);
      const problem = toProblem(error, request.id);
      // A refusal that says "not now" may be retried under the same key, as without the preference.
      const also = isDecision(error) ? [] : withdraw();
      return { status: problem.status, body: JSON.stringify(problem), also };
    }
  });
  Object.assign(request.responseHeaders, operationHeaders(pending.operation.operationId));
  return { status: ACCEPTED, contentType: JSON_TYPE, body: JSON.stringify(view(pending.operation)) };
}
