/** A refusal of the S3 endpoint. */
import { ClientError, exitCodeOf } from '../failures.ts';
import { textIn } from './xml.ts';

export class S3Failure extends ClientError {
  readonly status: number;
  /** `NoSuchKey`, …; of an answer without a body, the status. */
  readonly code: string;

  constructor(told: { status: number; code: string; message: string; requestId: string | undefined }) {
    const { status, code, message, requestId } = told;
    super(message, exitCodeOf(status), requestId === undefined ? undefined : `request ${requestId}`);
    this.status = status;
    this.code = code;
  }
}

const WITHOUT_BODY: Readonly<Record<number, string>> = {
  403: 'access denied',
  404: 'no such object or bucket',
  412: 'another request changed the object',
};

/** From an answer that is not 2xx. */
export function readFailure(status: number, body: string, requestId: string | undefined): S3Failure {
  const code = textIn(body, 'Code') ?? String(status);
  const message = textIn(body, 'Message') ?? WITHOUT_BODY[status] ?? `the endpoint returned status ${status}`;
  return new S3Failure({ status, code, message, requestId });
}
