/** Failures that end a command, with their exit codes. */
import { CloudError } from '../sdk/index.ts';

/** Exit codes; docs/client.md explains them. */
export const EXIT = {
  ok: 0,
  failure: 1,
  usage: 2,
  signIn: 3,
  forbidden: 4,
  notFound: 5,
  conflict: 6,
  partial: 7,
  unavailable: 8,
  timeout: 124,
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** A failure reported in one line, without a stack. */
export class ClientError extends Error {
  readonly exitCode: ExitCode;
  /** How to fix the problem. */
  readonly hint: string | undefined;

  constructor(message: string, exitCode: ExitCode = EXIT.failure, hint?: string) {
    super(message);
    this.exitCode = exitCode;
    this.hint = hint;
  }
}

/** The command line was not understood. */
export class UsageError extends ClientError {
  constructor(message: string, hint?: string) {
    super(message, EXIT.usage, hint);
  }
}

/** The exit code for a response with this HTTP status; 0: there was no response. */
export function exitCodeOf(status: number): ExitCode {
  if (status === 401) return EXIT.signIn;
  if (status === 402 || status === 403) return EXIT.forbidden;
  if (status === 404 || status === 410) return EXIT.notFound;
  if (status === 409 || status === 412) return EXIT.conflict;
  if (status === 0 || status === 429 || status === 502 || status === 503 || status === 504)
    return EXIT.unavailable;
  return EXIT.failure;
}

export interface Told {
  readonly exitCode: ExitCode;
  /** For standard error, without `cloudlet: `. */
  readonly lines: readonly string[];
}

/** Report of a failure: message, hint, and the request id for the operator. */
export function tell(error: unknown): Told {
  if (error instanceof CloudError) {
    // The message of the field repeats the main message.
    const more = error.fields.filter(({ message }) => !error.message.includes(message));
    const fields = more.map(({ field, message }) => `  ${field}: ${message}`);
    const why = error.code === 'no_answer' ? whyNoAnswer(error) : (error.hint ?? HINTS.get(error.code));
    const hint = why === undefined ? [] : hintLines(why);
    const id = error.requestId === undefined ? [] : [`  request ${error.requestId}`];
    return { exitCode: exitCodeOf(error.status), lines: [error.message, ...fields, ...hint, ...id] };
  }
  if (error instanceof ClientError) {
    return {
      exitCode: error.exitCode,
      lines: [error.message, ...(error.hint === undefined ? [] : hintLines(error.hint))],
    };
  }
  const { message, code, path } = error as NodeJS.ErrnoException;
  const known = code === undefined ? undefined : FILE_ERRORS[code];
  if (known !== undefined) {
    const prefix = path === undefined ? '' : `${path}: `;
    return { exitCode: known.exitCode, lines: [`${prefix}${known.text}`] };
  }
  return { exitCode: EXIT.failure, lines: [message ?? String(error)] };
}

function hintLines(hint: string): string[] {
  return asCommands(hint)
    .split('\n')
    .map((line) => `  ${line}`);
}

/** Hint for an expired key of a profile, the most common failure of a sign-in. */
export const SIGN_IN_AGAIN =
  'Keys expire after the days set at login. Sign in again: cloudlet login URL (for the URL: cloudlet profile ls)';

/** Hints that the cloud does not give, because it does not know this program. */
const HINTS: ReadonlyMap<CloudError['code'], string> = new Map([['invalid_api_key', SIGN_IN_AGAIN]]);

const CERTIFICATE = /CERT|SELF_SIGNED|UNABLE_TO|ISSUER/;

/** The reason for a failed connection, more specific than the general hint; undefined: unknown. */
function whyNoAnswer({ cause, hint }: CloudError): string | undefined {
  const failed = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  if (!(failed instanceof Error)) return hint;
  const { code = '', message } = failed as NodeJS.ErrnoException;
  if (/wrong version number|packet length too long/i.test(message))
    return 'The address speaks http, not https: cloudlet login http://…, or CLOUDLET_URL=http://…';
  return certificateHint(failed) ?? (code === '' ? hint : `${message || code}. ${hint ?? ''}`.trim());
}

/** Hint for a rejected certificate; undefined: another failure. */
export function certificateHint(failed: unknown): string | undefined {
  const { code = '', message = '' } = failed as NodeJS.ErrnoException;
  if (code === 'CERT_NOT_YET_VALID' || code === 'CERT_HAS_EXPIRED')
    return `The certificate has expired or is not valid yet (${message}): check the clock of this computer`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return `The certificate is for another host name (${message}): use that name in the URL`;
  if (!CERTIFICATE.test(code)) return undefined;
  return [
    `The certificate was rejected (${message}). For a private certificate or CA, set its file:`,
    '    NODE_EXTRA_CA_CERTS=cloud.pem cloudlet …',
    "  To download a self-signed certificate (compare its fingerprint with the server's):",
    '    openssl s_client -connect HOST:443 </dev/null | openssl x509 >cloud.pem',
    '    openssl x509 -noout -fingerprint -sha256 -in cloud.pem',
  ].join('\n');
}

/** API calls in hints of the server, as commands; `…` is an id. */
const COMMANDS_OF_CALLS: Readonly<Record<string, string>> = {
  'GET /api/images': 'cloudlet vm images',
  'GET /api/vms/…/points': 'cloudlet vm points VM',
  'POST /api/vms/…/start': 'cloudlet vm start VM',
  'GET /api/buckets/…/points': 'cloudlet bucket points BUCKET',
  'GET /api/databases/…/points': 'cloudlet db points DATABASE',
  'GET /api/databases/…/credentials': 'cloudlet db url DATABASE --show',
};

function asCommands(hint: string): string {
  return hint.replace(/\b(?:GET|POST|PATCH|DELETE) \/api\/[\w/{}.-]*[\w}]/g, (call) => {
    const [method, ...path] = call.split('/');
    const shape = path.map((part, at) => (at === 2 && path.length > 2 ? '…' : part));
    return COMMANDS_OF_CALLS[[method, ...shape].join('/')] ?? call;
  });
}

const FILE_ERRORS: Readonly<Record<string, { text: string; exitCode: ExitCode }>> = {
  ENOENT: { text: 'no such file or folder', exitCode: EXIT.notFound },
  EACCES: { text: 'permission denied', exitCode: EXIT.forbidden },
  EPERM: { text: 'not permitted', exitCode: EXIT.forbidden },
  EMFILE: { text: 'too many open files (see ulimit -n)', exitCode: EXIT.failure },
  ENAMETOOLONG: { text: 'the name is too long for this file system', exitCode: EXIT.failure },
  ENOSPC: { text: 'no space left on disk', exitCode: EXIT.failure },
  EDQUOT: { text: 'disk quota exceeded', exitCode: EXIT.failure },
  EFBIG: { text: 'the file is larger than the file system or a limit allows', exitCode: EXIT.failure },
  EROFS: { text: 'the disk is read-only', exitCode: EXIT.forbidden },
  EEXIST: { text: 'already exists as a file', exitCode: EXIT.usage },
  EISDIR: { text: 'is a folder', exitCode: EXIT.usage },
  ENOTDIR: { text: 'is not a folder', exitCode: EXIT.usage },
};
