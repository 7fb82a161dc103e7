/** An operation as its caller sees it, in the 202 that begins it and when it is looked up. */
import type { Operation } from '../calls/operations.ts';
import { formatTime, formatTimeOrNull } from '../platform/clock.ts';
import { AppError } from '../platform/errors.ts';
import { namedObject, Type } from '../platform/json-schema.ts';
import { PROBLEM_SCHEMA, toProblem } from './problem.ts';

export const OperationView = namedObject(
  'Operation',
  {
    operation_id: Type.String(),
    name: Type.String({ description: 'The call it is, by its operationId here' }),
    state: Type.Union([Type.Literal('running'), Type.Literal('succeeded'), Type.Literal('failed')]),
    status: Type.Union([Type.Integer(), Type.Null()], {
      description: 'What the call would have been answered with; null until it has ended',
    }),
    result: Type.Unknown({ description: 'Once it has succeeded, the body of that response; else null' }),
    error: Type.Union([PROBLEM_SCHEMA, Type.Null()], { description: 'Once it has failed, its problem' }),
    created_at: Type.String(),
    ended_at: Type.Union([Type.String(), Type.Null()]),
  },
  { description: 'A call that was answered before it had ended' },
);

/** Status of a response that is an operation. */
export const ACCEPTED = 202;

/** Headers of such a response. */
export function operationHeaders(operationId: string): Record<string, string> {
  return { location: `/api/operations/${operationId}`, 'preference-applied': 'respond-async' };
}

/** An operation in the shape of OperationView. `requestId`: of the request that asks. */
export function presentOperation(operation: Operation, requestId: string) {
  const { operationId, name, createdAt, endedAt } = operation;
  return {
    operation_id: operationId,
    name,
    ...outcome(operation, requestId),
    created_at: formatTime(createdAt),
    ended_at: formatTimeOrNull(endedAt),
  };
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
    'Cloudlet or its disk failed before the outcome of this call was stored: it may have had its effect or none',
    { hint: 'Check the current state of the resource before retrying' },
  );
}
