/** A thread's side of jobs on pieces: each has one answer. */
import { parentPort } from 'node:worker_threads';
import { ownBytes, release } from '../../platform/buffers.ts';
import { Damaged } from '../../recovery/piece-box.ts';
import { codeOf } from './file-errors.ts';
import type { PieceAnswer, PieceJob } from './piece-jobs.ts';
import type { PiecePlace, PieceSetup } from './piece-place.ts';
import { PieceWork } from './piece-work.ts';

/** Answers the jobs of this thread from now on. */
export function answerPieceJobs(place: PiecePlace, setup: PieceSetup): void {
  const pieces = new PieceWork(place, setup);
  parentPort?.on('message', async ({ id, job }: { readonly id: number; readonly job: PieceJob }) => {
    const answer = await answerTo(pieces, job);
    if (job.kind === 'keep') release(job.bytes);
    const bytes = 'result' in answer && answer.result instanceof Uint8Array ? [answer.result.buffer] : [];
    parentPort?.postMessage({ id, answer }, bytes as ArrayBuffer[]);
  });
}

async function answerTo(pieces: PieceWork, job: PieceJob): Promise<PieceAnswer> {
  try {
    return { result: await work(pieces, job) };
  } catch (error) {
    const { message } = error as Error;
    return {
      failure: {
        message,
        code: codeOf(error),
        problem: error instanceof Damaged ? error.problem : undefined,
      },
    };
  }
}

async function work(pieces: PieceWork, job: PieceJob): Promise<unknown> {
  switch (job.kind) {
    case 'keep':
      return pieces.keep(job.bytes, job.isPacked);
    case 'keepPart':
      return pieces.keepPart(job.part, job.isPacked);
    case 'read':
      return ownBytes(await pieces.read(job.piece));
    case 'writeFile':
      return pieces.writeFile(job.file, job.pieces);
    case 'check':
      return pieces.check(job.piece, job.isQuick);
    case 'renewLock':
      return pieces.renewLock(job.piece);
  }
}
