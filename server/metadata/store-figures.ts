/** Figures of the metadata store for Prometheus, since the start of the process. Both engines fill them. */
import type { Meters } from '../platform/prometheus.ts';

export class StoreFigures {
  /** Commits sent to the store, including refused ones. */
  commits = 0;
  /** Transactions that they shared. */
  batches = 0;
  /** Time these took, fsync included. */
  batchSeconds = 0;
  /** Batches repeated after a transaction conflict, or statement by statement after a refusal. */
  retries = 0;
  /** Lost connections; they are reopened on demand. */
  lostConnections = 0;
  /** Batches with a lost connection, whose outcome was read afterwards. */
  outcomesAsked = 0;
  /** Outcomes that stayed unknown. */
  outcomesUnknown = 0;

  /** Registers them as `cloudlet_metadata_…`. */
  register(meters: Meters): void {
    const count = (name: string, help: string, read: () => number) =>
      meters.gauge(`cloudlet_metadata_${name}_total`, { help, type: 'counter', read });
    count('commits', 'Commits sent to the metadata store', () => this.commits);
    count('batches', 'Transactions that the commits shared', () => this.batches);
    count('batch_seconds', 'Total time of these transactions', () => this.batchSeconds);
    count('retries', 'Transactions repeated after a conflict or refusal', () => this.retries);
    count('lost_connections', 'Connections to the store that were lost', () => this.lostConnections);
    count(
      'outcomes_asked',
      'Transactions whose outcome was queried after a lost connection',
      () => this.outcomesAsked,
    );
    count('outcomes_unknown', 'Transactions whose outcome stayed unknown', () => this.outcomesUnknown);
  }
}
