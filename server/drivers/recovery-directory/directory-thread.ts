/** The thread that works on the pieces of a directory. */
import { workerData } from 'node:worker_threads';
import type { PieceSetup } from '../recovery-pieces/piece-storage.ts';
import { answerPieceJobs } from '../recovery-pieces/piece-work.ts';
import { PieceFiles } from './piece-files.ts';

const setup = workerData as PieceSetup & { readonly location: string };
answerPieceJobs(new PieceFiles(setup.location), setup);
