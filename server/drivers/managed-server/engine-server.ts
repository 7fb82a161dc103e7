import type { AppError } from '../../platform/errors.ts';
import type { ServerLog } from './server-log.ts';

/** The server of an engine: one that we look after, or one of the operator's. */
export interface EngineServer {
  /** The PID of its process, for tests and figures; null: it does not run, or is not ours. */
  readonly pid: number | null;
  /** Whether there ever was one, with data that somebody may wait for. */
  readonly isMade: boolean;
  /** Whether it answered when it was last asked. */
  readonly isUp: boolean;
  /** All that it and its sessions say; null: it is not for us to read. */
  readonly log: ServerLog | null;
  /** Why it could not be had when it was last asked; null: it could. */
  readonly problem: AppError | null;
  /** Has it answering. Throws `engine_unavailable`; it is then tried again from time to time. */
  up(): Promise<void>;
  close(): Promise<void>;
}
