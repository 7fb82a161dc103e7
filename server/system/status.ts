/** The state of the cloud as a whole. */
import type { Clock } from '../clock.ts';
import type { Alarm, Alarms } from './alarms.ts';
import { isWritable } from './writable.ts';

/** What the engine of virtual machines says of itself. */
export interface ComputeStatus {
  readonly engine: string;
  readonly isUsable: boolean;
  readonly version: string;
  readonly accel: string;
  readonly accelReason: string;
  readonly problem: string;
  readonly fix: string;
}

export interface StatusDeps<Scrub> {
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly version: string;
  readonly metrics: () => { cpu: number; memory: number; disk: number | null };
  readonly scrub: () => Promise<Scrub>;
  readonly compute: () => Promise<ComputeStatus>;
}

/** Alarms by the component they tell of. */
const STORAGE_ALARMS = new Set(['blob_fsync_failed', 'blob_thread_died', 'damaged_objects']);
const METADATA_ALARMS = new Set([
  'metadata_log_stuck',
  'metadata_out_of_space',
  'metadata_read_failed',
  'metadata_write_failed',
]);
const BILLING_ALARMS = new Set(['billing_inconsistent']);

export class Status<Scrub> {
  readonly #deps: StatusDeps<Scrub>;
  readonly #startedAt: number;

  constructor(deps: StatusDeps<Scrub>) {
    this.#deps = deps;
    this.#startedAt = deps.clock.monotonic();
  }

  async read() {
    const alarms = this.#deps.alarms.list();
    return {
      status: alarms.length === 0 ? ('ok' as const) : ('degraded' as const),
      version: this.#deps.version,
      uptime_seconds: Math.round((this.#deps.clock.monotonic() - this.#startedAt) / 1000),
      metrics: this.#deps.metrics(),
      components: {
        metadata: { status: stateOf(alarms, METADATA_ALARMS) },
        storage: { status: stateOf(alarms, STORAGE_ALARMS), scrub: await this.#deps.scrub() },
        billing: { status: stateOf(alarms, BILLING_ALARMS) },
        compute: presentCompute(await this.#deps.compute()),
      },
      alarms,
    };
  }

  /** True when reads and writes can be served. */
  isReady(): boolean {
    return isWritable(this.#deps.alarms);
  }
}

/** A missing engine is no alarm: everything else works without it. */
function presentCompute({ isUsable, accelReason, problem, fix, ...rest }: ComputeStatus) {
  const status = isUsable ? 'ok' : 'unavailable';
  return { status, ...rest, accel_reason: accelReason, problem: problem || null, fix: fix || null };
}

function stateOf(alarms: readonly Alarm[], codes: ReadonlySet<string>): string {
  return alarms.some(({ code }) => codes.has(code)) ? 'degraded' : 'ok';
}
