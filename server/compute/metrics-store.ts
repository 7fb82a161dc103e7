/** SQL of machines' readings. */
import type { Awaitable, Reads, Statement } from '../metadata/metadata.ts';

/** Steps that are kept, s. */
export const FINE_STEP = 5;
export const COARSE_STEP = 300;

/** Null: not known. Counters count since the run began. */
export interface Figures {
  readonly cpu_percent: number | null;
  readonly memory_used_bytes: number | null;
  readonly memory_total_bytes: number | null;
  readonly resident_bytes: number | null;
  readonly disk_read_bytes: number | null;
  readonly disk_write_bytes: number | null;
  readonly network_rx_bytes: number | null;
  readonly network_tx_bytes: number | null;
}

export interface SampleRow extends Figures {
  /** ms since 1970; of a coarse row, the beginning of what it stands for. */
  readonly at: number;
}

const FIGURES = `cpu_percent, memory_used_bytes, memory_total_bytes, resident_bytes, disk_read_bytes,
  disk_write_bytes, network_rx_bytes, network_tx_bytes`;

export class MetricsStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** Oldest first, `from` included and `to` not. */
  range(vm: number, stepSeconds: number, span: { from: number; to: number }): Awaitable<SampleRow[]> {
    return this.#reads.all(
      `SELECT at, ${FIGURES} FROM vm_samples
       WHERE vm = ? AND step_seconds = ? AND at >= ? AND at < ? ORDER BY at`,
      vm,
      stepSeconds,
      span.from,
      span.to,
    );
  }

  /** The newest fine reading at or after `since`. */
  newest(vm: number, since: number): Awaitable<SampleRow | undefined> {
    return this.#reads.get(
      `SELECT at, ${FIGURES} FROM vm_samples
       WHERE vm = ? AND step_seconds = ? AND at >= ? ORDER BY at DESC LIMIT 1`,
      vm,
      FINE_STEP,
      since,
    );
  }

  /** Does nothing for a machine that was deleted meanwhile: the readings of others share the commit. */
  insert(vm: number, { at, ...figures }: SampleRow): Statement {
    return {
      sql: `INSERT OR REPLACE INTO vm_samples (vm, step_seconds, at, ${FIGURES})
            SELECT id, ${FINE_STEP}, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM vms WHERE id = ?`,
      params: [
        at,
        figures.cpu_percent,
        figures.memory_used_bytes,
        figures.memory_total_bytes,
        figures.resident_bytes,
        figures.disk_read_bytes,
        figures.disk_write_bytes,
        figures.network_rx_bytes,
        figures.network_tx_bytes,
        vm,
      ],
    };
  }

  /**
   * Makes one coarse row of each machine's fine ones for each coarse step that begins in the span: means of
   * shares and memory, and the newest of the counters (SQLite takes the columns outside of aggregates from
   * the row that has the `max`).
   */
  aggregate(span: { from: number; to: number }): Statement {
    const ms = COARSE_STEP * 1000;
    return {
      sql: `INSERT OR REPLACE INTO vm_samples (vm, step_seconds, at, ${FIGURES})
            SELECT vm, ${COARSE_STEP}, bucket, cpu, used, total, resident, disk_read_bytes, disk_write_bytes,
              network_rx_bytes, network_tx_bytes
            FROM (SELECT vm, at - at % ${ms} AS bucket, max(at) AS newest, avg(cpu_percent) AS cpu,
                    CAST(round(avg(memory_used_bytes)) AS INTEGER) AS used,
                    CAST(round(avg(memory_total_bytes)) AS INTEGER) AS total,
                    CAST(round(avg(resident_bytes)) AS INTEGER) AS resident,
                    disk_read_bytes, disk_write_bytes, network_rx_bytes, network_tx_bytes
                  FROM vm_samples WHERE step_seconds = ${FINE_STEP} AND at >= ? AND at < ?
                  GROUP BY vm, bucket)`,
      params: [span.from, span.to],
    };
  }

  prune(stepSeconds: number, before: number): Statement {
    return {
      sql: 'DELETE FROM vm_samples WHERE step_seconds = ? AND at < ?',
      params: [stepSeconds, before],
    };
  }
}
