/** The jobs that run by the clock, and what is left to write when the cloud is stopped. */
import type { Logger } from 'pino';
import type { AccountParts } from './build-accounts.ts';
import type { Storage } from './build-storage.ts';
import type { Idempotency } from './calls/idempotency.ts';
import type { Operations } from './calls/operations.ts';
import type { Config } from './config/config.ts';
import type { Clock } from './platform/clock.ts';
import type { Jobs } from './platform/jobs.ts';

interface JobParts {
  readonly config: Config;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly accounts: AccountParts;
  readonly idempotency: Idempotency;
  readonly operations: Operations;
}

const FLUSH_MS = 5000;
const HOUR_MS = 3_600_000;

/** What is done again and again while the cloud runs. */
export async function startJobs(
  jobs: Jobs,
  { config, clock, storage, accounts, idempotency, operations }: JobParts,
): Promise<void> {
  const graceMs = config.sweepGraceSeconds * 1000;
  jobs.every('flush access times', FLUSH_MS, () => storage.accessTimes.flush());
  jobs.every('flush bytes sent', FLUSH_MS, () => storage.egress.flush());
  jobs.every('flush key use', FLUSH_MS, () => accounts.authenticator.flush());
  jobs.every('sweep garbage', Math.min(graceMs, 60_000), () => storage.sweeper.sweepGarbage());
  jobs.every('sweep orphans', graceMs * 6, () => storage.sweeper.sweepOrphans());
  jobs.every('sweep sessions', HOUR_MS, () => accounts.sessions.sweep());
  jobs.every('sweep idempotency keys', HOUR_MS, () => idempotency.sweep());
  jobs.every('sweep operations', HOUR_MS, () => operations.sweep());
  await storage.scrubber.start();
  if (config.scrubDays === 0) return;
  jobs.every('scrub', HOUR_MS, async () => {
    const finishedAt = await storage.scrubber.lastFinishedAt();
    if (finishedAt !== null && clock.now() - finishedAt < config.scrubDays * 24 * HOUR_MS) return;
    await storage.scrubber.run({ bytesPerSecond: config.scrubBytesPerSecond, fresh: false });
  });
}

/** What is written now and then, written for the last time. */
export async function flushAll(log: Logger, parts: readonly { flush(): Promise<unknown> }[]): Promise<void> {
  for (const part of parts) {
    try {
      await part.flush();
    } catch (error) {
      // Figures of the last seconds are not worth a failed stop.
      log.warn({ err: error }, 'figures of the last seconds were not stored');
    }
  }
}
