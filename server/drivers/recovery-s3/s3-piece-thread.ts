/** The thread that works on the pieces in a bucket. */
import { workerData } from 'node:worker_threads';
import type { S3Address } from '../../config/s3-address.ts';
import { systemClock } from '../../platform/clock.ts';
import type { PieceSetup } from '../recovery-pieces/piece-storage.ts';
import { answerPieceJobs } from '../recovery-pieces/piece-work.ts';
import { S3Counters } from '../s3-client/s3-counters.ts';
import { S3Objects } from '../s3-client/s3-objects.ts';
import { S3Requests } from '../s3-client/s3-requests.ts';
import type { BucketLock } from './bucket-proof.ts';
import { S3Pieces } from './s3-pieces.ts';

interface Setup extends PieceSetup {
  readonly address: S3Address;
  readonly counters: SharedArrayBuffer;
  readonly lock: BucketLock | null;
}

const { address, counters: memory, lock, ...setup } = workerData as Setup;
const requests = new S3Requests({ address, clock: systemClock, counters: new S3Counters(memory) });
answerPieceJobs(new S3Pieces(new S3Objects(requests, address.prefix), lock, systemClock), setup);
