/**
 * Periodic jobs. One run of a job at a time, also in a cluster; a failure is logged and the next run tries
 * again.
 */
import type { Logger } from 'pino';
import type { Alarms } from './alarms.ts';
import { type Beat, onBeat } from './beat.ts';
import type { Membership } from './membership.ts';

export interface Job {
  readonly name: string;
  /** Interval; the first run is one interval after the start. */
  readonly everyMs: number;
  /** Each node runs it, the node that has the machines and databases, or any one node of the cluster. */
  readonly per: 'node' | 'host' | 'cluster';
  readonly run: () => Promise<unknown>;
  /** Codes of the alarms that its runs raise and clear; of a job of the cluster they move with it. */
  readonly raises?: readonly string[];
}

/** Turns without the lease, after which another node has had one and raises the alarm itself. */
const TURNS_OF_ANOTHER = 2;

/** Failures in a row after which another node may have more luck, as where one alone does not reach S3. */
const MOST_FAILURES = 3;

interface JobsDeps {
  readonly log: Logger;
  readonly membership: Membership;
  readonly alarms: Pick<Alarms, 'clear'>;
}

export class Jobs {
  readonly #log: Logger;
  readonly #membership: Membership;
  readonly #alarms: JobsDeps['alarms'];
  readonly #beats: Beat[] = [];
  readonly #running = new Map<string, Promise<void>>();

  constructor({ log, membership, alarms }: JobsDeps) {
    this.#log = log;
    this.#membership = membership;
    this.#alarms = alarms;
  }

  start(job: Job): void {
    const { name, everyMs, per, run } = job;
    const { isHost, isShared } = this.#membership;
    if (per === 'host' && !isHost) return;
    const work = per === 'cluster' && isShared ? this.#leased(job) : run;
    this.#beats.push(onBeat(everyMs, () => this.#run(name, work)));
  }

  /** Runs under a lease. Alarms of runs here go once another node has run it. */
  #leased({ name, run, raises = [] }: Job): () => Promise<unknown> {
    let turnsSince = Number.POSITIVE_INFINITY;
    let failures = 0;
    const attempt = async () => {
      failures++;
      await run();
      failures = 0;
    };
    const lease = `job:${name}`;
    return async () => {
      if (failures >= MOST_FAILURES) {
        this.#membership.pass(lease);
        failures = 0;
      }
      if (await this.#membership.holds(lease)) {
        turnsSince = 0;
        return attempt();
      }
      turnsSince++;
      if (turnsSince === TURNS_OF_ANOTHER) for (const code of raises) this.#alarms.clear(code);
    };
  }

  #run(name: string, work: () => Promise<unknown>): void {
    if (this.#running.has(name)) return;
    const run = work()
      .catch((error: unknown) => this.#log.error({ job: name, err: error }, 'a job failed'))
      .then(() => void this.#running.delete(name));
    this.#running.set(name, run);
  }

  /** Starts no further runs; resolves when current runs have ended. */
  async stop(): Promise<void> {
    for (const beat of this.#beats) beat.stop();
    await Promise.all(this.#running.values());
  }
}
