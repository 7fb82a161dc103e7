/** The state of S3, as an alarm and as the error of a call. */
import type { Alarms } from '../../platform/alarms.ts';
import { AppError } from '../../platform/errors.ts';
import { BlobFault, damaged } from '../blob-frames/blob-fault.ts';
import { concernsStore, fixOf, isS3Fault } from '../s3-client/s3-fault.ts';
import type { S3Patience } from '../s3-client/s3-requests.ts';

const UNREACHABLE = 'blobs_unreachable';
const FULL = 'blobs_full';
const RETRY_SECONDS = 5;

export interface S3HealthDeps {
  readonly alarms: Alarms;
  /** Names bucket and host, without the secret. */
  readonly label: string;
}

export class S3Health {
  readonly #deps: S3HealthDeps;
  #works = true;
  #answers = true;

  constructor(deps: S3HealthDeps) {
    this.#deps = deps;
  }

  /** False from a failure until S3 has stored something again. */
  get works(): boolean {
    return this.#works;
  }

  /** False after an unanswered request, until one succeeds. */
  get answers(): boolean {
    return this.#answers;
  }

  /** Callers need not wait long while S3 is known not to respond. */
  get patience(): S3Patience {
    return this.#works ? {} : { tries: 1, silenceMs: 5000 };
  }

  /** S3 answers again, although perhaps without space. */
  recovered(): void {
    this.#works = true;
    this.#answers = true;
    this.#deps.alarms.clear(UNREACHABLE);
  }

  /** After a successful write. */
  stored(): void {
    this.recovered();
    this.#deps.alarms.clear(FULL);
  }

  /** Raises the alarm of a failure that concerns S3 as a whole. */
  note(error: unknown): void {
    if (!concernsStore(error)) return;
    const { alarms, label } = this.#deps;
    if (isS3Fault(error, 'full')) {
      alarms.raise(FULL, `S3 has no space left for ${label}: ${error.message}`, fixOf(error));
      return;
    }
    this.#works = false;
    if (isS3Fault(error, 'away')) this.#answers = false;
    alarms.raise(UNREACHABLE, `S3 does not work for ${label}: ${error.message}`, fixOf(error));
  }

  /** The public error of a failure. Raises its alarm. */
  explain(error: unknown): AppError {
    if (error instanceof AppError) return error;
    this.note(error);
    if (isS3Fault(error, 'full')) {
      return new AppError('out_of_space', 'The object store of this cloud is full; nothing was stored', {
        hint: 'Delete objects or old versions, or ask the operator for more space; writes resume automatically',
        cause: error,
      });
    }
    if (isS3Fault(error, 'missing', 'range')) return damaged(error);
    const isThread = error instanceof BlobFault && error.kind === 'thread';
    if (!isS3Fault(error) && !isThread) {
      return new AppError('internal_error', 'The bytes could not be stored or read.', { cause: error });
    }
    return new AppError(
      'overloaded',
      isThread ? 'A storage thread ended' : 'The object store cannot be reached; nothing was stored',
      {
        hint: 'Retry; objects of up to 16 KiB are not affected. The operator finds the reason among the alarms',
        retryAfterSeconds: RETRY_SECONDS,
        cause: error,
      },
    );
  }
}
