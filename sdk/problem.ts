/** The cloud's error responses, as an Error. */
import type { Problem } from '../build/sdk/schema.d.ts';

export type ErrorCode = Problem['code'] | 'no_answer' | 'not_understood';

/** An error from the cloud, or a failure to reach it. `message` names the rule that refused the call. */
export class CloudError extends Error {
  override readonly name = 'CloudError';
  /** Stable; `no_answer`: the cloud was not reached, `not_understood`: the response is not from the cloud. */
  readonly code: ErrorCode;
  /** The HTTP status; 0 if there was no response. */
  readonly status: number;
  /** How to fix the problem. */
  readonly hint: string | undefined;
  /** Problems with single members of the body. */
  readonly fields: readonly { readonly field: string; readonly message: string }[];
  /** `query_failed`: position of the error in the statement, from 1, if known. */
  readonly position: number | undefined;
  /** `password_change_required`: token that sets the new password, with `resetPassword`. */
  readonly resetToken: string | undefined;
  /** Identifies the log entry for the operator. */
  readonly requestId: string | undefined;
  /** From Retry-After. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    known: { code: ErrorCode; status: number; detail: string } & Partial<Omit<Problem, 'code'>>,
    options: { cause?: unknown; retryAfterSeconds?: number | undefined } = {},
  ) {
    super(known.detail, { cause: options.cause });
    this.code = known.code;
    this.status = known.status;
    this.hint = known.hint;
    this.fields = known.errors ?? [];
    const { position, reset_token } = known as {
      readonly position?: unknown;
      readonly reset_token?: unknown;
    };
    this.resetToken = typeof reset_token === 'string' ? reset_token : undefined;
    this.position = typeof position === 'number' ? position : undefined;
    this.requestId = known.request_id;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** `text`: the body of a response that is not 2xx. */
export function readProblem(status: number, text: string, retryAfter: string | null): CloudError {
  const seconds = retryAfter === null ? Number.NaN : Number(retryAfter);
  const retryAfterSeconds = Number.isFinite(seconds) ? seconds : undefined;
  try {
    const problem = JSON.parse(text) as Problem;
    if (typeof problem.detail === 'string' && typeof problem.code === 'string') {
      return new CloudError(problem, { retryAfterSeconds });
    }
  } catch {
    // Not JSON: the response is from a proxy.
  }
  return notUnderstood(status, { retryAfterSeconds });
}

/** For a response that is invalid or truncated. */
export function notUnderstood(
  status: number,
  options: { cause?: unknown; retryAfterSeconds?: number | undefined },
): CloudError {
  const detail = `The answer (status ${status}) is not from Cloudlet`;
  const hint = 'A proxy between here and the cloud may have given it, or cut it off';
  return new CloudError({ code: 'not_understood', status, detail, hint }, options);
}

/** For a request without a response. */
export function noAnswer(cause: unknown): CloudError {
  const hint = 'Check that it is running and that the network is up';
  return new CloudError(
    { code: 'no_answer', status: 0, detail: 'Cloudlet does not answer', hint },
    { cause },
  );
}
