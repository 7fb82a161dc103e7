/**
 * Periodic jobs. One run of a job at a time, also in a cluster; a failure is logged and the next run tries
 * again.
 */
import type { Logger } from 'pino';
import type { Alarms } from '../alarms.ts';
import type { Membership } from '../membership.ts';
import { type Beat, onBeat } from './beat.ts';

export interface Job {
  readonly name: string;
  /** Interval; the first run is one interval after the start. */
  readonly everyMs: number;
  /**
   * Where the job runs: on each node, on the node with the machines and databases, or on any one node of the
   * cluster.
   */
  readonly per: 'node' | 'host' | 'cluster';
  readonly run: () => Promise<unknown>;
  /** True: the job has nothing to watch now, so it runs only once a second. */
  readonly mayRest?: () => boolean;
  /**
   * False: this node cannot run it now, for example because it alone does not reach S3. Another
   * node then gets the lease.
   */
  readonly isAble?: () => boolean;
  /** Codes of the alarms that its runs raise and clear; for a job of the cluster they move with it. */
  readonly raises?: readonly string[];
}

/** After this many turns without the lease, another node has run the job and raises the alarm itself. */
const TURNS_OF_ANOTHER = 2;

/**
 * Consecutive failures after which another node may succeed, for example because this one alone
 * does not reach S3.
 */
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
  /** Jobs under a lease, by its name. */
  readonly #leasedJobs = new Map<string, { readonly job: Job; readonly work: () => Promise<unknown> }>();
  /** Leases that other nodes had passed on at the last heartbeat. */
  #passed: ReadonlySet<string> = new Set();
  readonly #stopNews: () => void;

  constructor({ log, membership, alarms }: JobsDeps) {
    this.#log = log;
    this.#membership = membership;
    this.#alarms = alarms;
    this.#stopNews = membership.onNews(() => this.#heard());
  }

  start(job: Job): void {
    const { name, everyMs, per, run } = job;
    const { isHost, isShared } = this.#membership;
    if (per === 'host' && !isHost) return;
    const isLeased = per === 'cluster' && isShared;
    const work = isLeased ? this.#leased(job) : run;
    if (isLeased) this.#leasedJobs.set(leaseOf(name), { job, work });
    this.#beats.push(onBeat(everyMs, () => this.#run(name, work), job.mayRest));
  }

  /** Runs the job under a lease. Alarms of this node's runs are cleared once another node has run the job. */
  #leased({ name, run, isAble = () => true, raises = [] }: Job): () => Promise<unknown> {
    let turnsSince = Number.POSITIVE_INFINITY;
    let failures = 0;
    const attempt = async () => {
      failures++;
      await run();
      failures = 0;
    };
    const lease = leaseOf(name);
    return async () => {
      if (!isAble()) this.#membership.pass(lease);
      else if (failures >= MOST_FAILURES) {
        this.#membership.pass(lease);
        failures = 0;
      }
      if (await this.#membership.holds(lease)) {
        turnsSince = 0;
        return isAble() ? attempt() : undefined;
      }
      turnsSince++;
      if (turnsSince === TURNS_OF_ANOTHER) for (const code of raises) this.#alarms.clear(code);
    };
  }

  /** A heartbeat: gives up the leases of jobs that fail here, and takes those that other nodes gave up. */
  #heard(): void {
    const { runId } = this.#membership;
    const nodes = this.#membership.nodes();
    const held = nodes.find((node) => node.runId === runId)?.leases ?? [];
    const passed = new Set(nodes.flatMap((node) => (node.runId === runId ? [] : node.passed)));
    for (const [lease, { job, work }] of this.#leasedJobs) {
      const isUnable = held.includes(lease) && job.isAble?.() === false && !this.#running.has(job.name);
      if (isUnable) this.#membership.pass(lease);
      if (passed.has(lease) && !this.#passed.has(lease)) this.#run(job.name, work);
    }
    this.#passed = passed;
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
    this.#stopNews();
    for (const beat of this.#beats) beat.stop();
    await Promise.all(this.#running.values());
  }
}

const leaseOf = (name: string) => `job:${name}`;
