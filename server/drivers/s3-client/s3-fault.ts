/** S3 failures: classification, and messages for the operator. */
import { readXml, textOf } from '../../../libs/s3-wire/index.ts';
import { BlobFault } from '../blob-frames/blob-fault.ts';

/**
 * `away`: no response, or one that says to try later; `denied`: wrong keys or rights; `clock`: the
 * clocks differ; `region`, `bucket`, `tls`, `refused`: the address is wrong or S3 does not support
 * the request; `full`: no space or quota left; `foreign`: the bucket belongs to another cloud. The
 * others concern one object: `missing`, `exists`, `range`, `no_upload`, and `digest`, bytes
 * corrupted in transit.
 */
export type S3Problem =
  | 'away'
  | 'denied'
  | 'clock'
  | 'region'
  | 'bucket'
  | 'tls'
  | 'refused'
  | 'full'
  | 'foreign'
  | 'missing'
  | 'exists'
  | 'range'
  | 'no_upload'
  | 'digest';

/** Problems of one object, not of S3 as a whole. */
const OF_ONE_OBJECT: ReadonlySet<string> = new Set(['missing', 'exists', 'range', 'no_upload', 'digest']);

const BY_CODE: Readonly<Record<string, S3Problem>> = {
  AccessDenied: 'denied',
  AccountProblem: 'denied',
  AllAccessDisabled: 'denied',
  AuthorizationHeaderMalformed: 'region',
  BadDigest: 'digest',
  InvalidAccessKeyId: 'denied',
  InvalidRange: 'range',
  NoSuchBucket: 'bucket',
  NoSuchKey: 'missing',
  NoSuchUpload: 'no_upload',
  PermanentRedirect: 'region',
  PreconditionFailed: 'exists',
  QuotaExceeded: 'full',
  RequestTimeTooSkewed: 'clock',
  RequestTimeout: 'away',
  SignatureDoesNotMatch: 'denied',
  SlowDown: 'away',
  XMinioStorageFull: 'full',
  XAmzContentSHA256Mismatch: 'digest',
};
const BY_STATUS: Readonly<Record<number, S3Problem>> = {
  301: 'region',
  307: 'region',
  403: 'denied',
  404: 'missing',
  408: 'away',
  409: 'away',
  412: 'exists',
  416: 'range',
  429: 'away',
  507: 'full',
};

/** Seconds by which the clock of this host differs from S3's, from its `Date` header, or null. */
type Skew = number | null;

/** The fault of an unsuccessful answer. `body`: its text, XML or not. */
export function faultOfAnswer(status: number, body: string, skew: Skew = null): BlobFault {
  const { code, message } = readError(body);
  const kind = BY_CODE[code] ?? BY_STATUS[status] ?? (status >= 500 && status !== 501 ? 'away' : 'refused');
  const seconds = kind === 'clock' && skew !== null ? `, by ${Math.round(Math.abs(skew))} s` : '';
  const said = [status, code, message.slice(0, 200)].filter((part) => part !== '').join(' ');
  return s3Fault(kind, `the S3 service returned ${said}${seconds}`);
}

/** The fault of a request without an answer. */
export function faultOfConnection(error: unknown): BlobFault {
  const { code, message } = error as { code?: string; message: string };
  const isTls = /^(?:ERR_TLS|ERR_SSL|CERT_|DEPTH_ZERO|UNABLE_TO_|SELF_SIGNED|EPROTO|HPE_)/.test(code ?? '');
  return s3Fault(isTls ? 'tls' : 'away', code === undefined ? message : `${code}: ${message}`);
}

export function s3Fault(problem: S3Problem, message: string): BlobFault {
  return new BlobFault({ kind: 's3', code: problem, message });
}

export function isS3Fault(error: unknown, ...problems: readonly S3Problem[]): boolean {
  if (!(error instanceof BlobFault) || error.kind !== 's3') return false;
  return problems.length === 0 || problems.includes(error.code as S3Problem);
}

/** True if S3 as a whole, or its configuration, does not work. */
export function concernsStore(error: unknown): error is BlobFault {
  return error instanceof BlobFault && error.kind === 's3' && !OF_ONE_OBJECT.has(error.code);
}

const FIXES: Readonly<Partial<Record<S3Problem, (setting: string) => string>>> = {
  away: () => 'Check that S3 runs and can be reached from this host; Cloudlet resumes automatically',
  denied: (setting) =>
    `Check key and secret in ${setting}, and that they may get, put, delete and list objects of the bucket`,
  clock: () => 'Set the clock of this host, or of S3, by NTP',
  region: (setting) => `Set region=, and the host of that region, in ${setting}`,
  bucket: (setting) => `Create the bucket, or correct its name in ${setting}`,
  tls: (setting) =>
    `Check tls= and the port in ${setting}; for your own CA set NODE_EXTRA_CA_CERTS to its file`,
  refused: (setting) => `Check ${setting}: host, tls= and style= must fit this S3 service`,
  full: () => 'Free space in S3 or raise the quota; deleting objects and old versions helps',
  foreign: (setting) => `Correct bucket or prefix in ${setting}`,
};

/** The fix for the operator. `setting`: names the setting with the URL. */
export function fixOf(fault: { readonly code: string }, setting = 'CLOUDLET_BLOBS_URL'): string {
  return FIXES[fault.code as S3Problem]?.(setting) ?? 'See the log of Cloudlet for the reason';
}

function readError(body: string): { readonly code: string; readonly message: string } {
  try {
    const root = readXml(body.trim());
    return { code: textOf(root, 'Code') ?? '', message: textOf(root, 'Message') ?? '' };
  } catch {
    return { code: '', message: '' };
  }
}
