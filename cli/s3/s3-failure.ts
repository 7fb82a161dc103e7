/** A refusal of the S3 endpoint. */
import { readXml, textOf, type XmlElement } from '../../libs/s3-wire/index.ts';
import { ClientError, EXIT, type ExitCode, exitCodeOf, SIGN_IN_AGAIN } from '../failures.ts';

export class S3Failure extends ClientError {
  readonly status: number;
  /** `NoSuchKey`, …; for a response without a body, the status. */
  readonly code: string;
  /** Whether the clock of this computer was wrong; the response has set it for the next request. */
  readonly isClockWrong: boolean = false;

  constructor(told: { status: number; code: string; message: string; requestId: string | undefined }) {
    const { status, code, message, requestId } = told;
    const known = Object.hasOwn(KNOWN, code) ? KNOWN[code] : undefined;
    const id = requestId === undefined ? undefined : `request ${requestId}`;
    super(message, known?.exitCode ?? exitCodeOf(status), known?.hint ?? id);
    this.status = status;
    this.code = code;
  }
}

/** Hints for messages that name no fix. */
const KNOWN: Readonly<Record<string, { readonly hint: string; readonly exitCode: ExitCode }>> = {
  InvalidAccessKeyId: { hint: SIGN_IN_AGAIN, exitCode: EXIT.signIn },
  RequestTimeTooSkewed: { hint: 'Set the clock of this computer', exitCode: EXIT.forbidden },
};

const WITHOUT_BODY: Readonly<Record<number, string>> = {
  403: 'access denied',
  404: 'no such object or bucket',
  412: 'another request changed the object',
};

/** From a response that is not 2xx. */
export function readFailure(status: number, body: string, requestId: string | undefined): S3Failure {
  const said = errorIn(body);
  const code = (said && textOf(said, 'Code')) ?? String(status);
  const message =
    (said && textOf(said, 'Message')) ?? WITHOUT_BODY[status] ?? `the endpoint returned status ${status}`;
  return new S3Failure({ status, code, message, requestId });
}

/** undefined: the response is from another program, such as a proxy. */
function errorIn(body: string): XmlElement | undefined {
  try {
    return readXml(body.trim());
  } catch {
    return undefined;
  }
}

/** The document of a 2xx response. Throws ClientError for any other. */
export function readAnswer(text: string): XmlElement {
  try {
    return readXml(text.trim());
  } catch (error) {
    const why = (error as Error).message;
    throw new ClientError(`the response is not valid S3 XML (${why}); is this an S3 endpoint?`);
  }
}
