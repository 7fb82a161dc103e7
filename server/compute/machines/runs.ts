/** One run of a guest, from start to end, in the engine and in the row. Callers hold the machine's lock. */
import { BACKGROUND, type CallRecorder, inFirstCommit, type Recorder } from '../../metadata/change.ts';
import type { Clock } from '../../platform/clock.ts';
import { AppError, type ErrorCode } from '../../platform/errors.ts';
import { type Reason, reasonOf } from '../../resources/row-change.ts';
import type {
  GuestEnd,
  GuestImage,
  GuestNetwork,
  GuestSpec,
  Hypervisor,
  LastEnd,
  PrivateLink,
  StopMethod,
} from '../hypervisor.ts';
import { DEFAULT_IMAGE } from '../images/images.ts';
import type { NetworkServices } from '../private-network.ts';
import type { Exposures } from './exposures.ts';
import type { Happening, Lifecycle, NewRun } from './lifecycle.ts';
import { nextState, type VmState } from './transitions.ts';
import { variableOf } from './vm-fields.ts';
import type { VmRow, VmStore } from './vm-store.ts';

export interface RunsDeps {
  readonly store: VmStore;
  readonly clock: Clock;
  readonly hypervisor: Hypervisor;
  readonly lifecycle: Lifecycle;
  readonly exposures: Exposures;
  readonly services: Pick<NetworkServices, 'uri'>;
}

export interface BootOptions {
  /** State to return to when the start is not possible for now. */
  readonly before: VmState;
  /** Recorder of the response once it runs. */
  readonly call: Recorder;
  /** Start time of a guest that already runs, ms since 1970; null: not running, or unknown. */
  readonly since: number | null;
}

export interface HaltOptions {
  readonly graceMs: number;
  /** Ends the grace period early. */
  readonly signal: AbortSignal;
  /** Recorder of the response once it is stopped. */
  readonly call: CallRecorder;
  /** Kept from the beginning of the stop, also over a crash; replaces the engine's reason. */
  readonly reason?: Reason | undefined;
}

/** Temporary errors of the engine: the machine returns to its state before. */
const PASSING: readonly ErrorCode[] = ['engine_unavailable', 'insufficient_capacity', 'out_of_space'];

const STOPPED_BY: Readonly<Record<StopMethod, Reason>> = {
  guest: { code: 'shut_down', message: 'The virtual machine shut down on request' },
  quit: { code: 'powered_off', message: 'The virtual machine was powered off' },
  terminate: {
    code: 'terminated',
    message: 'Powering off failed; the process of the virtual machine was terminated',
  },
  kill: { code: 'killed', message: 'Powering off failed; the process of the virtual machine was killed' },
  was_stopped: { code: 'was_stopped', message: 'The virtual machine was already stopped' },
};

/** Only the process that stopped the machine would know whether a stop was requested. */
const SHUT_DOWN_UNSEEN: Reason = {
  code: 'guest_shutdown',
  message: 'The virtual machine shut down while Cloudlet was not running, before its stop completed',
};

/** The change for a guest that ended while not monitored. */
export type UnseenEnd = Required<Pick<Happening, 'event' | 'desired' | 'reason'>>;

export const CRASHED_UNSEEN: UnseenEnd = {
  event: 'crashed',
  desired: 'stopped',
  reason: {
    code: 'crashed',
    message:
      'The virtual machine ended while Cloudlet was not running: QEMU was killed, or the guest powered off',
  },
};
export const HOST_RESTARTED: UnseenEnd = {
  event: 'host_restarted',
  desired: 'running',
  reason: { code: 'host_restarted', message: 'The host restarted; the virtual machine is being restarted' },
};

export class Runs {
  readonly #deps: RunsDeps;

  constructor(deps: RunsDeps) {
    this.#deps = deps;
  }

  /** Brings the machine to `running`. On failure the row holds the reason. Throws the engine's error. */
  async boot(row: VmRow, { before, call, since }: BootOptions): Promise<VmRow> {
    const { hypervisor, lifecycle, clock, exposures } = this.#deps;
    let run: NewRun;
    const spec = this.#specOf(row);
    // A repair leaves the row as it is, so that the next round tries again.
    if (call === BACKGROUND) await spec;
    try {
      const { handle, accel, accelReason } = await hypervisor.start(await spec);
      run = { handle, accel, accel_reason: accelReason, started_at: since ?? clock.now() };
    } catch (error) {
      await lifecycle.apply(row, { event: backTo(before, error), desired: 'stopped', reason: whyNot(error) });
      throw error;
    }
    // Opened before the response, which lists the open ports.
    await exposures.open(row);
    const endedAt = row.started_at === null ? undefined : run.started_at;
    const started = { event: 'started', desired: 'running', run, endedAt } as const;
    const running = await lifecycle.apply(row, started, call);
    exposures.begin(row.vm_id);
    return running;
  }

  async #specOf(row: VmRow): Promise<GuestSpec> {
    const hasRun = await this.#deps.store.hasRun(row.vm_id);
    const spec = { ...guestSpec(row), hasRun };
    return row.databases === null ? spec : { ...spec, databaseUris: await this.#urisOf(row, row.databases) };
  }

  /**
   * A deleted database is omitted. Throws while a database cannot be looked up: a guest reads the list only
   * once.
   */
  async #urisOf({ account_id }: VmRow, names: string): Promise<Readonly<Record<string, string>>> {
    const uris: Record<string, string> = {};
    for (const name of JSON.parse(names) as string[]) {
      const uri = await this.#deps.services.uri(account_id, name).catch((error: unknown) => {
        throw unknownDatabase(name, error);
      });
      if (uri !== null) uris[variableOf(name)] = uri;
    }
    return uris;
  }

  /**
   * Brings the machine to `stopped`, through the engine unless it never ran. Throws errors of the
   * transition table and the engine.
   */
  async halt(row: VmRow, { graceMs, call, signal, reason }: HaltOptions): Promise<VmRow> {
    const { hypervisor, lifecycle, exposures } = this.#deps;
    const next = nextState(row.state, 'stop');
    if (row.state === 'stopped') return row;
    if (next === 'stopped') return lifecycle.apply(row, { event: 'stop', desired: 'stopped' }, call);
    const isUnderWay = row.state === 'stopping';
    const stop = { event: 'stop', desired: 'stopped', reason } as const;
    const stopping = isUnderWay
      ? row
      : await inFirstCommit(call.entry)((first) => lifecycle.apply(row, stop, first));
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

  /** How and when the row's run ended; null when it did not, or unknown. */
  async #endOf({ vm_id, handle }: VmRow): Promise<LastEnd | null> {
    const { end } = await this.#deps.hypervisor.inspect(vm_id);
    return end !== null && end.handle === handle ? end : null;
  }

  /** Records that a guest ended by itself. An earlier run's end is ignored. */
  async noteEnd(row: VmRow, end: GuestEnd): Promise<void> {
    const { lifecycle, exposures } = this.#deps;
    if (row.handle !== end.handle) return;
    await lifecycle.apply(row, {
      event: end.cause === 'guest_shutdown' ? 'powered_off' : 'crashed',
      desired: 'stopped',
      reason: { code: end.cause, message: end.message },
      endedAt: end.at,
    });
    await exposures.close(end.vmId);
  }

  /**
   * Records a guest that is gone without a known end. Usage counts up to `at`, ms since 1970; null: up to the
   * last sample.
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

/** Reason of a run that ended before the engine stopped it. */
function endReason({ cause, message }: LastEnd): Reason {
  return cause === 'guest_shutdown' ? SHUT_DOWN_UNSEEN : { code: cause, message };
}

function backTo(before: VmState, error: unknown): 'not_started' | 'not_started_new' | 'failed' {
  const isPassing = error instanceof AppError && PASSING.includes(error.code);
  if (!isPassing || before === 'error') return 'failed';
  return before === 'created' ? 'not_started_new' : 'not_started';
}

function unknownDatabase(name: string, cause: unknown): AppError {
  const why = cause instanceof AppError ? `: ${cause.message}` : '';
  return new AppError('engine_unavailable', `The address of the database ${name} cannot be read now${why}`, {
    hint: 'retry in a moment, or start a machine that lists no `databases`',
    cause,
  });
}

/** Exposes the text of AppErrors only. */
function whyNot(error: unknown): Reason {
  if (error instanceof AppError) return { code: error.code, message: error.message };
  return {
    code: 'internal_error',
    message: 'The hypervisor failed; the operator finds the cause in the log',
  };
}

/** The engine's specification of a machine. */
export function guestSpec(row: Omit<VmRow, 'id'>): GuestSpec {
  return {
    vmId: row.vm_id,
    uuid: row.uuid,
    hostname: hostnameOf(row.name, row.vm_id),
    vcpus: row.vcpus,
    memoryMb: row.memory_mb,
    diskGb: row.disk_gb,
    rebuilds: row.rebuilds,
    image: guestImage(row.image_id),
    sshKeys: JSON.parse(row.ssh_keys) as string[],
    userData: row.user_data,
    network: guestNetwork(row),
  };
}

/** The engine's description of an image that was found before. */
function guestImage(imageId: string): GuestImage {
  const isTiny = imageId === DEFAULT_IMAGE;
  // Imported images are stored as qcow2.
  return { imageId, boot: isTiny ? 'kernel' : 'disk', format: isTiny ? 'raw' : 'qcow2' };
}

export function guestNetwork(row: Pick<VmRow, 'mac' | 'ports' | 'outbound' | 'address'>): GuestNetwork {
  const { mac, address } = row;
  const ports = JSON.parse(row.ports) as number[];
  return { mac, address, ports, outbound: row.outbound === 1, privateLink: privateLinkOf(row) };
}

const PREFIX = 11;
/** The network is `<base>.64.0.0/11`: services in its lower half, machines in the upper. */
const MACHINES = 80;
const RESOLVER = '64.0.1';
const BASE = 10;
/** Used if the machines' address pool already uses 10.64.0.0/11. */
const OTHER_BASE = 100;

/** A machine's place in its network, derived from its own MAC and address; undefined: it has no address. */
export function privateLinkOf(vm: {
  readonly mac: string;
  readonly address: string | null;
}): PrivateLink | undefined {
  if (vm.address === null) return undefined;
  const [first = 0, second = 0, ...rest] = vm.address.split('.').map(Number);
  const base = first === BASE && second >= 64 && second < 96 ? OTHER_BASE : BASE;
  return {
    mac: vm.mac.replace(/^52/, '56'),
    address: `${base}.${MACHINES + (second & 15)}.${rest.join('.')}/${PREFIX}`,
    resolver: `${base}.${RESOLVER}`,
  };
}

/** 1 to 63 of `a-z0-9-`, beginning and ending with a letter or digit; the id for a name that has none. */
export function hostnameOf(name: string, vmId: string): string {
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-');
  const hostname = words.slice(0, 64).replace(/^-+/, '').slice(0, 63).replace(/-+$/, '');
  return hostname === '' ? vmId : hostname;
}
