/** Creates the audit log entries about S3: changes of buckets, and refusals for lack of permission. */
import type { S3Error } from '../../libs/s3-wire/index.ts';
import type { AuditEntry, AuditTrail } from '../calls/audit.ts';
import { isTold } from '../http/audited.ts';
import { type Exchange, entryOf } from '../http/exchange.ts';
import { toS3Error } from './domain-errors.ts';
import type { S3Call, S3Operation } from './s3-call.ts';

/** Operations on objects are traffic, not changes of the bucket. */
const OF_OBJECTS: ReadonlySet<string> = new Set(['DeleteObjects', 'PostObject']);

/** Whether the operation changes a bucket itself. */
export function changesBucket({ level, method, name }: S3Operation): boolean {
  return level === 'bucket' && method !== 'GET' && method !== 'HEAD' && !OF_OBJECTS.has(name);
}

type End = Pick<AuditEntry, 'outcome' | 'status' | 'code'>;

/** The operation, with an entry in the commit of its change. */
export function audited(
  trail: AuditTrail | undefined,
  exchange: Exchange,
  { run }: S3Operation,
): S3Operation['run'] {
  if (trail === undefined) return run;
  return async (call: S3Call) => {
    const target = call.what.target.bucket ?? '';
    const entry = ({ outcome, status, code }: End): AuditEntry => {
      const made = entryOf(exchange, { action: exchange.routeName, outcome, status, code, target });
      made.accountId = call.principal.accountId;
      return made;
    };
    let isRecorded = false;
    const record = () => {
      isRecorded = true;
      return trail.statements(entry({ outcome: 'done', status: 200, code: '' }));
    };
    try {
      const answer = await run({ ...call, record });
      if (!isRecorded) trail.note(entry({ outcome: 'done', status: answer?.status ?? 200, code: '' }));
      return answer;
    } catch (error) {
      const { status, code } = toS3Error(error);
      // Permission refusals are logged elsewhere, with all other refusals.
      const outcome = status === 500 ? 'failed' : 'refused';
      if (isTold(status) && status !== 403) trail.note(entry({ outcome, status, code }));
      throw error;
    }
  };
}

/**
 * A request that was refused for lack of permission. Without a signature, crawlers cause such
 * requests all day.
 */
export function noteRefusal(
  trail: AuditTrail | undefined,
  exchange: Exchange,
  { status, code }: S3Error,
): void {
  const isUnsigned = exchange.principal.via === 'nobody' && code === 'AccessDenied';
  if (isUnsigned) return;
  trail?.note(entryOf(exchange, { action: exchange.routeName, outcome: 'refused', status, code }));
}
