/** One run of one guest: its process, two QMP connections, and its end. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { GuestEnd, HeldSocket } from '../../../compute/hypervisor.ts';
import { AppError } from '../../../platform/errors.ts';
import { patienceMs } from '../../../platform/host/host-facts.ts';
import { connectIn, holdSocket } from '../../host-process/foreign-files.ts';
import { hostBootId, isAlive, type ProcessIdentity } from '../../host-process/process-identity.ts';
import { type Ending, endingText, signalName } from '../../host-process/running-process.ts';
import { BALLOON_ID, FILES } from '../arguments.ts';
import { QmpClient, QmpError, type QmpEvent } from '../qmp.ts';

interface RunDeps {
  readonly vmId: string;
  readonly identity: GuestIdentity;
  /** Folder of the guest's sockets. */
  readonly folder: string;
  /** Last output of the process, for messages; null: none. */
  readonly lastWords: () => string | null;
  /** The ending of the process; null: running, or not recorded. */
  readonly ending: () => Ending | null;
  /** Called once when the process has ended, for any reason. */
  readonly onGone: (run: GuestRun, end: RunEnd) => void;
}

/** `at` null: unknown. */
type RunEnd = Pick<GuestEnd, 'cause' | 'message'> & { readonly at: number | null };

interface ConnectOptions {
  readonly timeoutMs?: number;
  readonly onEvent?: (event: QmpEvent) => void;
}

const POLL_MS = 20;
const CONNECT_POLL_MS = 2;
const READY_MS = 15_000;
const STATS_SECONDS = 5;
const RECONNECT_MS = 500;
/** From the close of its sockets to the end of the process: QEMU writes back its disks in between. */
const DYING_MS = 3000;
/** The end of a process is recorded a little after /proc shows it. */
const NOTE_MS = 300;
const NOTE_POLL_MS = 2;

export class GuestRun {
  readonly vmId: string;
  readonly identity: GuestIdentity;
  readonly handle: string;
  /** The guest is being stopped: its end is not reported. */
  isStopping = false;
  readonly #deps: RunDeps;
  #control: Promise<QmpClient> | null = null;
  #events: QmpClient | null = null;
  /** A second connection to the same socket would never be greeted. */
  #watching: Promise<void> | null = null;
  #isClosed = false;
  #isGone = false;
  #shutdownReason: string | null = null;
  #hasPanicked = false;
  #vcpuThreads: readonly number[] | null = null;

  constructor(deps: RunDeps) {
    this.#deps = deps;
    this.vmId = deps.vmId;
    this.identity = deps.identity;
    this.handle = handleOf(deps.identity);
  }

  get isAlive(): boolean {
    return !this.#isGone && isAlive(this.identity);
  }

  /** Runs a QMP command on the control socket, reconnecting if needed. Rejects with QmpError. */
  async command(name: string, args: Readonly<Record<string, unknown>> = {}, timeoutMs?: number) {
    const client = await this.#controlClient(timeoutMs);
    return client.command(name, args, timeoutMs);
  }

  #controlClient(timeoutMs?: number): Promise<QmpClient> {
    this.#control ??= this.#connect(FILES.control, timeoutMs === undefined ? {} : { timeoutMs }).then(
      (client) => {
        client.onClose(() => {
          this.#control = null;
        });
        return client;
      },
      (error: unknown) => {
        this.#control = null;
        throw error;
      },
    );
    return this.#control;
  }

  async #connect(name: string, options: ConnectOptions): Promise<QmpClient> {
    const socket = await connectIn(this.#deps.folder, name).catch((error: Error) => {
      throw new QmpError('closed', `no connection to QMP: ${error.message}`);
    });
    // The socket must belong to this guest, whatever its folder says.
    const along = async (client: QmpClient) => {
      const answer = (await client.command('query-uuid', {}, options.timeoutMs)) as { UUID?: unknown } | null;
      if (answer?.UUID !== this.identity.uuid) throw new QmpError('closed', 'QMP belongs to another guest');
    };
    const client = await QmpClient.open(socket, { ...options, along });
    if (!this.#isClosed) return client;
    client.close();
    throw new QmpError('closed', 'the run was abandoned');
  }

  /** Connects both sockets, each unless it is connected. Rejects with QmpError. */
  async connect(): Promise<void> {
    await Promise.all([this.watch(), this.#controlClient()]);
  }

  /** No reason is known, because Cloudlet was not running. */
  watch(): Promise<void> {
    if (this.#events !== null && !this.#events.isClosed) return Promise.resolve();
    this.#watching ??= this.#watch().finally(() => {
      this.#watching = null;
    });
    return this.#watching;
  }

  async #watch(): Promise<void> {
    const client = await this.#connect(FILES.events, { onEvent: (event) => this.#take(event) });
    this.#events = client;
    client.onClose(() => void this.#afterClose());
  }

  /** Calls watch() until it succeeds or the process is gone. */
  async watchPersistently(): Promise<void> {
    await this.watch().catch(() => void this.#afterClose());
  }

  #take({ name, data }: QmpEvent): void {
    if (name === 'GUEST_PANICKED') this.#hasPanicked = true;
    if (name === 'SHUTDOWN' && typeof data.reason === 'string') this.#shutdownReason = data.reason;
  }

  async #afterClose(): Promise<void> {
    if (!(await this.waitGone(DYING_MS)) && !this.#isClosed) {
      await sleep(RECONNECT_MS);
      if (!this.#isClosed) await this.watchPersistently();
      return;
    }
    if (this.#isGone || this.#isClosed) return;
    this.#isGone = true;
    this.#deps.onGone(this, this.#end());
    this.close();
  }

  #end(): RunEnd {
    const ending = this.#deps.ending();
    const at = ending?.at ?? null;
    if (this.#hasPanicked) return { cause: 'guest_panic', message: 'the guest kernel panicked', at };
    const reason = this.#shutdownReason;
    if (reason === 'guest-shutdown') {
      return { cause: 'guest_shutdown', message: 'the guest powered itself off', at };
    }
    const words = this.#deps.lastWords();
    // No reason is known, because Cloudlet was not running.
    if (ending !== null && reason === null) return unwatchedEnd(ending, words);
    const what = ending === null ? `the process ended: ${reason ?? 'unknown reason'}` : endingText(ending);
    return { cause: 'crashed', message: words === null ? what : `${what}: ${words}`, at };
  }

  /** Whether the process ended within that time, or before `signal` aborted; then its end is recorded. */
  async waitGone(withinMs: number, signal?: AbortSignal): Promise<boolean> {
    // Counted in steps: with a clock, a busy host would give the guest less than its time.
    for (let waited = 0; isAlive(this.identity); waited += POLL_MS) {
      if (waited >= withinMs || this.#isClosed || signal?.aborted) return false;
      await sleep(POLL_MS);
    }
    for (let waited = 0; this.#deps.ending() === null && waited < NOTE_MS; waited += NOTE_POLL_MS) {
      await sleep(NOTE_POLL_MS);
    }
    return true;
  }

  /** QEMU's name for its state: `prelaunch`, `running`, `paused`, … Rejects with QmpError. */
  async status(timeoutMs?: number): Promise<string> {
    const answer = (await this.command('query-status', {}, timeoutMs)) as { status?: unknown } | null;
    return String(answer?.status);
  }

  /**
   * Resolves when both sockets answer. Rejects when the process ends, or does not answer in 15 s, longer on a
   * busy host.
   */
  async whenReady(): Promise<void> {
    for (let waited = 0; ; waited += CONNECT_POLL_MS) {
      try {
        return await this.connect();
      } catch (error) {
        if (!this.isAlive || waited > patienceMs(READY_MS)) throw error;
        await sleep(CONNECT_POLL_MS);
      }
    }
  }

  /** Sets QEMU options that need a running QEMU, then starts the processor. Rejects on failure. */
  async resume(): Promise<void> {
    const interval = { property: 'guest-stats-polling-interval', value: STATS_SECONDS };
    const balloon = { path: `/machine/peripheral/${BALLOON_ID}`, ...interval };
    // Sent together, executed in this order: the guest does not wait for us to read each reply, and
    // we do not wait for replies that its processor, once it runs, would delay.
    const [, , status] = await Promise.all([
      this.command('qom-set', balloon),
      this.command('cont'),
      this.status(),
    ]);
    // `paused`: it ran, and the host's disk became full just then.
    if (status !== 'running' && status !== 'paused')
      throw new AppError('internal_error', `the guest is ${status} after its start`);
  }

  /** Threads of the host that run the guest's processors. */
  async vcpuThreads(): Promise<readonly number[]> {
    if (this.#vcpuThreads === null) {
      const cpus = (await this.command('query-cpus-fast')) as readonly { 'thread-id'?: unknown }[];
      this.#vcpuThreads = cpus.map((cpu) => Number(cpu['thread-id']));
    }
    return this.#vcpuThreads;
  }

  /** See Hypervisor.privateSocket(). */
  privateSocket(): HeldSocket | null {
    try {
      return this.isAlive ? holdSocket(this.#deps.folder, FILES.network) : null;
    } catch {
      return null;
    }
  }

  /** Detaches from the process, which continues. */
  close(): void {
    this.#isClosed = true;
    this.#events?.close();
    this.#control?.then((client) => client.close()).catch(() => {});
  }
}

/** QEMU's words when a signal asked it to end; it then exits as after a shutdown. */
const TOLD_BY_SIGNAL = /terminating on signal (\d+)/;

/**
 * How an unmonitored run ended. Clean exits count as shutdowns, because QEMU does not distinguish
 * them; `words`: its last output.
 */
export function unwatchedEnd(
  ending: Ending,
  words: string | null,
): Pick<GuestEnd, 'cause' | 'message' | 'at'> {
  const { status, at } = ending;
  const signal = TOLD_BY_SIGNAL.exec(words ?? '')?.[1];
  if (status === 0 && signal === undefined) {
    return {
      cause: 'guest_shutdown',
      message: 'the guest powered itself off while Cloudlet was not running',
      at,
    };
  }
  const text = status === 0 ? `the process was ended by ${signalName(Number(signal))}` : endingText(ending);
  const message = words === null || status === 0 ? text : `${text}: ${words}`;
  return { cause: 'crashed', message, at };
}

/** A process that runs a guest. */
export interface GuestIdentity extends ProcessIdentity {
  /** The guest's, which its QMP sockets confirm. */
  readonly uuid: string;
}

export function handleOf({ pid, startTime, bootId, uuid }: Omit<GuestIdentity, 'uid'>): string {
  return `${pid}.${startTime}.${bootId}.${uuid}`;
}

/** The inverse of handleOf(). */
export function identityOf(handle: string, uid: number | null): GuestIdentity {
  const [pid, startTime, bootId = '', uuid = ''] = handle.split('.');
  return { pid: Number(pid), startTime: Number(startTime), bootId, uuid, uid };
}

/** Whether the process of that handle started before the host's present boot, and so is certainly gone. */
export function isOfEarlierBoot(handle: string): boolean {
  return identityOf(handle, null).bootId !== hostBootId();
}
