/** One run of a guest, from start to end, in the engine and in the row. Callers hold the machine's action. */
import type { Recorder } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, type ErrorCode } from '../../platform/errors.ts';
import type { GuestEnd, GuestNetwork, GuestSpec, Hypervisor, LastEnd, StopMethod } from '../hypervisor.ts';
import { guestImage } from '../images/images.ts';
import type { Exposures } from './exposures.ts';
import type { Happening, Lifecycle, NewRun, Reason } from './lifecycle.ts';
import { nextState, type VmState } from './transitions.ts';
import type { VmRow, VmStore } from './vm-store.ts';

export interface RunsDeps {
  readonly store: VmStore;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly lifecycle: Lifecycle;
  readonly exposures: Exposures;
}

export interface BootOptions {
  /** Where the machine is again when it could not be started for want of something. */
  readonly before: VmState;
  /** Who is answered once it runs. */
  readonly call: Recorder;
  /** When a guest that runs already began to, ms since 1970; null: it does not, or nobody knows. */
  readonly since: number | null;
}

export interface HaltOptions {
  readonly graceMs: number;
  /** Ends the grace before its time. */
  readonly signal: AbortSignal;
  /** Who is answered once it is stopped. */
  readonly call: Recorder;
  /** Kept from the beginning of the stop, also over a crash, in place of how the engine ended it. */
  readonly reason?: Reason | undefined;
}

/** The engine lacks something that may come: the machine is as it was before. */
const PASSING: readonly ErrorCode[] = ['engine_unavailable', 'insufficient_capacity', 'out_of_space'];

const STOPPED_BY: Readonly<Record<StopMethod, Reason>> = {
  guest: { code: 'shut_down', message: 'The machine shut down when asked to' },
  quit: { code: 'powered_off', message: 'The machine was powered off without waiting any longer' },
  terminate: {
    code: 'terminated',
    message: 'The machine could not be powered off; its process was terminated',
  },
  kill: { code: 'killed', message: 'The machine could not be powered off; its process was killed' },
  was_stopped: { code: 'was_stopped', message: 'The machine was already stopped' },
};

/** Whether it was asked to, only who stopped it then could tell. */
const SHUT_DOWN_UNSEEN: Reason = {
  code: 'guest_shutdown',
  message: 'The machine shut down before its stop was completed, while Cloudlet was not running',
};

/** What a guest that is gone without a word leads to. */
export type UnseenEnd = Required<Pick<Happening, 'event' | 'desired' | 'reason'>>;

export const CRASHED_UNSEEN: UnseenEnd = {
  event: 'crashed',
  desired: 'stopped',
  reason: {
    code: 'crashed',
    message: 'The machine ended while Cloudlet was not running: it was killed, or powered itself off',
  },
};
export const HOST_RESTARTED: UnseenEnd = {
  event: 'host_restarted',
  desired: 'running',
  reason: { code: 'host_restarted', message: 'The host restarted; the machine is started again' },
};

export class Runs {
  readonly #deps: RunsDeps;

  constructor(deps: RunsDeps) {
    this.#deps = deps;
  }

  /** To running. On failure the row says why. Throws what the engine says. */
  async boot(row: VmRow, { before, call, since }: BootOptions): Promise<VmRow> {
    const { hypervisor, lifecycle, clock, exposures } = this.#deps;
    let run: NewRun;
    try {
      run = { ...(await hypervisor.start(guestSpec(row))), startedAt: since ?? clock.now() };
    } catch (error) {
      await lifecycle.apply(row, { event: backTo(before, error), desired: 'stopped', reason: whyNot(error) });
      throw error;
    }
    // Before the response, which says what is open.
    await exposures.open(row);
    const endedAt = row.started_at === null ? undefined : run.startedAt;
    const started = { event: 'started', desired: 'running', run, endedAt } as const;
    const running = await lifecycle.apply(row, started, call);
    exposures.begin(row.vm_id);
    return running;
  }

  /** To `stopped`, by way of the engine unless it never ran. Throws what table and engine say. */
  async halt(row: VmRow, { graceMs, call, signal, reason }: HaltOptions): Promise<VmRow> {
    const { hypervisor, lifecycle, exposures } = this.#deps;
    const next = nextState(row.state, 'stop');
    if (row.state === 'stopped') return row;
    if (next === 'stopped') return lifecycle.apply(row, { event: 'stop', desired: 'stopped' }, call);
    const isUnderWay = row.state === 'stopping';
    const stopping = isUnderWay
      ? row
      : await lifecycle.apply(row, { event: 'stop', desired: 'stopped', reason });
    let method: StopMethod;
    try {
      method = await hypervisor.stop(row.vm_id, { graceMs, signal });
    } catch (error) {
      await lifecycle.apply(stopping, { event: 'failed', reason: whyNot(error) });
      throw error;
    }
    await exposures.close(row.vm_id);
    const end = method === 'was_stopped' ? await this.#endOf(row) : null;
    const how = end === null ? STOPPED_BY[method] : endReason(end);
    const halted = {
      event: 'halted',
      reason: reasonOf(stopping) ?? how,
      endedAt: end?.at ?? undefined,
    } as const;
    return lifecycle.apply(stopping, halted, call);
  }

  /** How and when the run of that row ended; null when it did not, or nobody knows. */
  async #endOf({ vm_id, handle }: VmRow): Promise<LastEnd | null> {
    const { end } = await this.#deps.hypervisor.inspect(vm_id);
    return end !== null && end.handle === handle ? end : null;
  }

  /** Notes that a guest ended by itself. That of an earlier run says nothing of the present one. */
  async noteEnd(end: GuestEnd): Promise<void> {
    const { store, lifecycle, exposures } = this.#deps;
    const row = await store.find(end.vmId);
    if (row === undefined || row.handle !== end.handle) return;
    await lifecycle.apply(row, {
      event: end.cause === 'guest_shutdown' ? 'powered_off' : 'crashed',
      desired: 'stopped',
      reason: { code: end.cause, message: end.message },
      endedAt: end.at,
    });
    await exposures.close(end.vmId);
  }

  /**
   * Notes that a guest is gone and nobody knows how. It is counted up to `at`, ms since 1970; null: only the
   * time in which it was seen running.
   */
  async noteGone(row: VmRow, gone: UnseenEnd, at: number | null): Promise<VmRow> {
    const { store, lifecycle, exposures } = this.#deps;
    if (row.started_at === null) return row;
    const endedAt = at ?? (await store.lastSeen(row.id, row.started_at)) ?? row.started_at;
    const after = await lifecycle.apply(row, { ...gone, endedAt });
    await exposures.close(row.vm_id);
    return after;
  }
}

/** Why a run ended that was over before the engine could stop it. */
function endReason({ cause, message }: LastEnd): Reason {
  return cause === 'guest_shutdown' ? SHUT_DOWN_UNSEEN : { code: cause, message };
}

/** Why it is being stopped, when that was said. */
function reasonOf({ reason_code, reason_message }: VmRow): Reason | null {
  return reason_code === null ? null : { code: reason_code, message: reason_message ?? '' };
}

function backTo(before: VmState, error: unknown): 'not_started' | 'not_started_new' | 'failed' {
  const isPassing = error instanceof AppError && PASSING.includes(error.code);
  if (!isPassing || before === 'error') return 'failed';
  return before === 'created' ? 'not_started_new' : 'not_started';
}

/** Shows an AppError as it is, and nothing of any other error. */
function whyNot(error: unknown): Reason {
  if (error instanceof AppError) return { code: error.code, message: error.message };
  return { code: 'internal_error', message: 'The engine failed; its operator finds why in the log' };
}

/** What an engine is told of a machine. */
export function guestSpec(row: Omit<VmRow, 'id'>): GuestSpec {
  return {
    vmId: row.vm_id,
    uuid: row.uuid,
    hostname: hostnameOf(row.name, row.vm_id),
    vcpus: row.vcpus,
    memoryMb: row.memory_mb,
    diskGb: row.disk_gb,
    image: guestImage(row.image_id),
    sshKeys: JSON.parse(row.ssh_keys) as string[],
    userData: row.user_data,
    network: guestNetwork(row),
  };
}

export function guestNetwork(row: Pick<VmRow, 'mac' | 'ports' | 'outbound' | 'address'>): GuestNetwork {
  const { mac, address } = row;
  return { mac, address, ports: JSON.parse(row.ports) as number[], outbound: row.outbound === 1 };
}

/** 1 to 63 of `a-z0-9-`, beginning and ending with a letter or digit; of a name without any, the id. */
export function hostnameOf(name: string, vmId: string): string {
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-');
  const hostname = words.slice(0, 64).replace(/^-+/, '').slice(0, 63).replace(/-+$/, '');
  return hostname === '' ? vmId : hostname;
}
