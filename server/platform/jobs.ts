/**
 * Periodic jobs. One run of a job at a time, also in a cluster; a failure is logged and the next run tries
 * again.
 */
import type { Logger } from 'pino';
import { type Beat, onBeat } from './beat.ts';
import type { Membership } from './membership.ts';

export interface Job {
  readonly name: string;
  /** Interval; the first run comes after one. */
  readonly everyMs: number;
  /** Each node runs it, the node that has the machines and databases, or any one node of the cluster. */
  readonly per: 'node' | 'host' | 'cluster';
  readonly run: () => Promise<unknown>;
}

export class Jobs {
  readonly #log: Logger;
  readonly #membership: Membership;
  readonly #beats: Beat[] = [];
  readonly #running = new Map<string, Promise<void>>();

  constructor(log: Logger, membership: Membership) {
    this.#log = log;
    this.#membership = membership;
  }

  start({ name, everyMs, per, run }: Job): void {
    const { isHost, isShared } = this.#membership;
    if (per === 'host' && !isHost) return;
    const leased = async () => {
      if (await this.#membership.holds(`job:${name}`)) await run();
    };
    const work = per === 'cluster' && isShared ? leased : run;
    this.#beats.push(onBeat(everyMs, () => this.#run(name, work)));
  }

  #run(name: string, work: () => Promise<unknown>): void {
    if (this.#running.has(name)) return;
    const run = work()
      .catch((error: unknown) => this.#log.error({ job: name, err: error }, 'a job failed'))
      .then(() => void this.#running.delete(name));
    this.#running.set(name, run);
  }

  /** Starts no further runs; resolves when the current ones have ended. */
  async stop(): Promise<void> {
    for (const beat of this.#beats) beat.stop();
    await Promise.all(this.#running.values());
  }
}
