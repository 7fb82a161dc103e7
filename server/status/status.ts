/** The state of the cloud as a whole. */
import { type Alarm, type Alarms, whyReadOnly } from '../platform/alarms.ts';
import type { Clock } from '../platform/clock.ts';
import { AppError, isAppError } from '../platform/errors.ts';
import type { Preparing } from '../platform/host/preparing.ts';
import type { Membership } from '../platform/membership.ts';
import { alarmsOfAll, toldTo, type Viewer } from './visible-alarms.ts';

/** Status of the hypervisor. */
export interface ComputeStatus {
  readonly engine: string;
  readonly isUsable: boolean;
  readonly version: string;
  readonly accel: string;
  readonly accelReason: string;
  readonly problem: string;
  readonly fix: string;
  readonly preparing?: Preparing | undefined;
}

/** Status of a database engine. */
export interface DatabaseEngineStatus {
  readonly engine: string;
  readonly available: boolean;
  readonly version: string | null;
  readonly source: string;
  readonly reason: string | null;
  readonly fix: string | null;
  readonly preparing?: Preparing | undefined;
}

/** Where metadata and object bytes are stored. */
export interface StoreEngines {
  readonly metadata: 'sqlite' | 'postgresql';
  readonly storage: 'files' | 's3';
}

/** The last recovery point, if it failed. */
export interface WithFailure {
  readonly last_failure?: { readonly at: string; readonly reason: string | null } | null;
}

export interface StatusDeps<Scrub, Recovery> {
  readonly clock: Clock;
  readonly alarms: Alarms;
  readonly membership: Membership;
  readonly version: string;
  readonly stores: StoreEngines;
  readonly metrics: () => { cpu: number; memory: number; disk: number | null };
  readonly scrub: () => Promise<Scrub>;
  readonly compute: () => Promise<ComputeStatus>;
  /** Whether there are virtual machines. */
  readonly hasMachines: () => Promise<boolean>;
  readonly databases: () => Promise<readonly DatabaseEngineStatus[]>;
  readonly recovery: () => Promise<Recovery>;
}

/** The alarms of each component. */
const COMPONENT_ALARMS = {
  metadata: [
    'metadata_damaged',
    'metadata_log_stuck',
    'metadata_out_of_space',
    'metadata_read_failed',
    'metadata_read_only',
    'metadata_taken_over',
    'metadata_unreachable',
    'metadata_write_failed',
  ],
  storage: [
    'blob_fsync_failed',
    'blob_thread_died',
    'blobs_full',
    'blobs_unreachable',
    'damaged_objects',
    'out_of_space',
  ],
  billing: ['billing_inconsistent'],
  compute: ['few_files_left', 'machines_may_not_grow', 'machines_wait_for_room'],
  databases: ['damaged_databases', 'database_engine_unavailable', 'databases_not_moved', 'out_of_space'],
  recovery: [
    'recovery_drill_overdue',
    'recovery_logs_damaged',
    'recovery_point_failed',
    'recovery_point_overdue',
    'recovery_point_partial',
    'recovery_points_damaged',
    'recovery_retention_failed',
    'recovery_schedule_failed',
    'recovery_target_unavailable',
  ],
} as const;

export class Status<Scrub, Recovery extends WithFailure> {
  readonly #deps: StatusDeps<Scrub, Recovery>;
  readonly #startedAt: number;
  #phase: 'starting' | 'serving' | 'stopping' = 'starting';
  readonly #last: { scrub?: Scrub; recovery?: Recovery } = {};

  constructor(deps: StatusDeps<Scrub, Recovery>) {
    this.#deps = deps;
    this.#startedAt = deps.clock.monotonic();
  }

  /** The failure reason of a recovery point may name resources, so only administrators see it. */
  async read(viewer: Viewer) {
    const [scrub, recovery] = [await this.#lastOf('scrub'), await this.#lastOf('recovery')];
    const compute = await this.#deps.compute();
    const engines = await this.#deps.databases();
    const alarms = toldTo(viewer, alarmsOfAll(this.#deps.alarms, this.#deps.membership));
    const isMissed = !compute.isUsable && (await this.#hasMachines());
    const isWell = alarms.length === 0 && !isMissed;
    return {
      status: isWell ? ('ok' as const) : ('degraded' as const),
      version: this.#deps.version,
      uptime_seconds: Math.round((this.#deps.clock.monotonic() - this.#startedAt) / 1000),
      metrics: this.#deps.metrics(),
      components: {
        metadata: { ...stateOf('metadata', alarms), engine: this.#deps.stores.metadata },
        storage: { ...stateOf('storage', alarms), engine: this.#deps.stores.storage, scrub },
        billing: stateOf('billing', alarms),
        compute: presentCompute(compute, alarms),
        databases: {
          ...stateOf('databases', alarms, engines.flatMap(alarmsOf)),
          engines: engines.map(presentEngine),
        },
        recovery: {
          ...stateOf('recovery', alarms),
          ...(viewer.seesAll ? recovery : withoutReason(recovery)),
        },
      },
      alarms,
    };
  }

  /**
   * If a host never gets the programs for machines, or gets them in a minute, the rest of the cloud
   * works.
   */
  async #hasMachines(): Promise<boolean> {
    try {
      return await this.#deps.hasMachines();
    } catch {
      return true;
    }
  }

  /** While the metadata store is unreachable, its last figures are used: the status must be available. */
  async #lastOf<Name extends 'scrub' | 'recovery'>(
    name: Name,
  ): Promise<{ scrub: Scrub; recovery: Recovery }[Name]> {
    try {
      const value = await this.#deps[name]();
      Object.assign(this.#last, { [name]: value });
      return value as { scrub: Scrub; recovery: Recovery }[Name];
    } catch (error) {
      const last = this.#last[name];
      if (last === undefined || !isAppError(error, 'overloaded')) throw error;
      return last as { scrub: Scrub; recovery: Recovery }[Name];
    }
  }

  /** Both ports listen. */
  serve(): void {
    this.#phase = 'serving';
  }

  /** Call before the ports are closed. */
  leave(): void {
    this.#phase = 'stopping';
  }

  /** Throws while this process should not receive requests: see the errors of getReadiness. */
  assertReady(): void {
    const { membership } = this.#deps;
    if (this.#phase === 'starting') throw new AppError('starting', 'Cloudlet is starting');
    if (this.#phase === 'stopping') {
      if (membership.isShared) throw new AppError('draining', 'This node is being stopped');
      throw new AppError('shutting_down', 'Cloudlet is stopping');
    }
    if (membership.isDraining()) {
      const hint = 'To end the draining, run cloudlet nodes resume';
      throw new AppError('draining', 'This node is draining; it still answers requests', { hint });
    }
    if (!membership.isCurrent()) {
      const hint = 'See GET /api/system/status; the node recovers automatically once the database responds';
      throw new AppError('node_cut_off', 'The database does not accept the heartbeats of this node', {
        hint,
      });
    }
    const why = this.whyNotReady();
    if (why === undefined) return;
    throw new AppError('read_only', `Writes are rejected ${why}`, { hint: 'See GET /api/system/status' });
  }

  /** Since when writes are rejected: `after a disk error`. Undefined: reads and writes are served. */
  whyNotReady(): string | undefined {
    return whyReadOnly(this.#deps.alarms);
  }
}

/** Alarms of its servers. */
const alarmsOf = ({ engine }: DatabaseEngineStatus) => [`${engine}_unavailable`, `${engine}_port_taken`];

const presentEngine = (engine: DatabaseEngineStatus) => ({ ...engine, preparing: engine.preparing ?? null });

/** Running machines with a minor problem of the engine, such as weaker isolation, are not degraded. */
function presentCompute(compute: ComputeStatus, alarms: readonly Alarm[]) {
  const { isUsable, accelReason, problem, fix, preparing = null, ...rest } = compute;
  const state = stateOf('compute', alarms);
  return {
    status: isUsable ? state.status : 'unavailable',
    ...rest,
    accel_reason: accelReason,
    preparing,
    problem: problem || state.problem,
    fix: fix || state.fix,
  };
}

function withoutReason<Recovery extends WithFailure>(recovery: Recovery): Recovery {
  const { last_failure: failure } = recovery;
  return failure ? { ...recovery, last_failure: { ...failure, reason: null } } : recovery;
}

/** `more`: additional alarm codes of this component. */
function stateOf(
  component: keyof typeof COMPONENT_ALARMS,
  alarms: readonly Alarm[],
  more: readonly string[] = [],
) {
  const codes: readonly string[] = [...COMPONENT_ALARMS[component], ...more];
  const own = alarms.filter(({ code }) => codes.includes(code));
  if (own.length === 0) return { status: 'ok', problem: null, fix: null };
  const all = (of: 'detail' | 'fix') => own.map((alarm) => alarm[of]).join('. ');
  return { status: 'degraded', problem: all('detail'), fix: all('fix') };
}
