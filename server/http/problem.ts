/** AppError → application/problem+json (RFC 9457) with the members of the contract §2. */
import { AppError, ERRORS, type ErrorCode, type FieldProblem } from '../platform/errors.ts';
import { namedObject, Type } from '../platform/json-schema.ts';

export const PROBLEM_TYPE = 'application/problem+json; charset=utf-8';

export interface Problem {
  /** Relative to the API: the docs page explains every code. */
  readonly type: string;
  readonly title: string;
  readonly status: number;
  readonly detail: string;
  readonly code: ErrorCode;
  readonly request_id: string;
  readonly hint?: string;
  readonly errors?: readonly FieldProblem[];
  /** Repeats `detail`, for clients that look there. */
  readonly error: string;
}

const FieldProblemShape = namedObject('FieldProblem', { field: Type.String(), message: Type.String() });

/** The same, for openapi.json. */
export const PROBLEM_SCHEMA = namedObject(
  'Problem',
  {
    type: Type.String(),
    title: Type.String(),
    status: Type.Integer(),
    detail: Type.String({ description: 'Names the rule that refused' }),
    code: Type.String({ description: 'Stable name', enum: Object.keys(ERRORS) }),
    request_id: Type.String(),
    hint: Type.Optional(Type.String({ description: 'What to do about it' })),
    errors: Type.Optional(Type.Array(FieldProblemShape)),
    error: Type.String({ description: 'The same as detail' }),
  },
  { description: 'RFC 9457 problem details' },
);

/** The body for `error`. Never shows its cause. */
export function toProblem(error: AppError, requestId: string): Problem {
  const { http, title } = ERRORS[error.code];
  return {
    ...error.extra,
    type: `/api/docs#error-${error.code}`,
    title,
    status: http,
    detail: error.message,
    code: error.code,
    request_id: requestId,
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    ...(error.fields === undefined ? {} : { errors: error.fields }),
    error: error.message,
  };
}

/** Headers that belong to the error itself. 429 and 503 always carry Retry-After. */
export function problemHeaders(error: AppError): Record<string, string> {
  const headers: Record<string, string> = { ...error.headers };
  const { http } = ERRORS[error.code];
  const retryAfter = error.retryAfterSeconds ?? (http === 429 || http === 503 ? 5 : undefined);
  if (retryAfter !== undefined) headers['retry-after'] = String(Math.max(1, Math.ceil(retryAfter)));
  if (http === 401) headers['www-authenticate'] = 'Bearer realm="cloudlet"';
  return headers;
}

/** What Fastify throws before a handler runs. Anything else unknown is ours and stays private. */
const FRAMEWORK_ERRORS: Readonly<Record<string, [ErrorCode, string]>> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported_media_type', 'This Content-Type is not accepted here'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['bad_http', 'The body does not match its Content-Length'],
  FST_ERR_BAD_URL: ['bad_http', 'The path is not a valid percent-encoded URL'],
  FST_ERR_MAX_PARAM_LENGTH: ['not_found', 'There is nothing with so long a name'],
  FST_ERR_ASYNC_CONSTRAINT: ['bad_http', 'Malformed request'],
};

/**
 * Any thrown value as an AppError; what is not known becomes `internal_error` with the value as its cause.
 */
export function toAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const known = FRAMEWORK_ERRORS[code];
  if (known) return new AppError(known[0], known[1], { cause: error });
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return new AppError('out_of_space', 'The disk is full; nothing was stored', { cause: error });
  }
  if (code === 'EMFILE' || code === 'ENFILE') {
    return new AppError('insufficient_capacity', 'This host can open no more files', {
      hint: 'Try again; the operator can raise the limit of open files (LimitNOFILE of the service)',
      retryAfterSeconds: 5,
      cause: error,
    });
  }
  return new AppError(
    'internal_error',
    'Something went wrong on our side; the request id names the log entry',
    {
      cause: error,
    },
  );
}
