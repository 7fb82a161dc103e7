/** SQL of the steady clock's anchor. */
import type { Reads, Statement } from '../metadata/metadata.ts';
import type { Anchor } from './steady-clock.ts';

export class ClockStore {
  readonly #reads: Reads;

  constructor(reads: Reads) {
    this.#reads = reads;
  }

  /** The last one written down, or null. */
  async find(): Promise<Anchor | null> {
    const row = await this.#reads.get<Anchor>(
      `SELECT boot_id AS bootId, uptime_ms AS uptimeMs, wall_ms AS wallMs, steady_ms AS steadyMs
       FROM steady_clock`,
    );
    return row ?? null;
  }

  put({ bootId, uptimeMs, wallMs, steadyMs }: Anchor): Statement {
    return {
      sql: `INSERT OR REPLACE INTO steady_clock (id, boot_id, uptime_ms, wall_ms, steady_ms)
            VALUES (1, ?, ?, ?, ?)`,
      params: [bootId, uptimeMs, wallMs, steadyMs],
    };
  }
}
