/** The thread that works on pieces: one job after the other, each with one answer. */
import { parentPort, workerData } from 'node:worker_threads';
import { ownBytes, release } from '../../platform/buffers.ts';
import { Damaged } from '../../recovery/piece-box.ts';
import { codeOf } from './file-errors.ts';
import { PieceFiles } from './piece-files.ts';
import type { PieceAnswer, PieceJob, PieceSetup } from './piece-jobs.ts';

const files = new PieceFiles(workerData as PieceSetup);

parentPort?.on('message', ({ id, job }: { readonly id: number; readonly job: PieceJob }) => {
  const answer = answerTo(job);
  if (job.kind === 'keep') release(job.bytes);
  const bytes = 'result' in answer && answer.result instanceof Uint8Array ? [answer.result.buffer] : [];
  parentPort?.postMessage({ id, answer }, bytes as ArrayBuffer[]);
});

function answerTo(job: PieceJob): PieceAnswer {
  try {
    return { result: work(job) };
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

function work(job: PieceJob): unknown {
  switch (job.kind) {
    case 'keep':
      return files.keep(job.bytes, job.isPacked);
    case 'keepPart':
      return files.keepPart(job.part, job.isPacked);
    case 'read':
      return ownBytes(files.read(job.piece));
    case 'writeFile':
      return files.writeFile(job.file, job.pieces);
    case 'check':
      return files.check(job.piece, job.isQuick);
  }
}
