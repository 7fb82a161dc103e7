/** One run of one guest: its process, the two QMP connections to it, and how it ends. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { GuestEnd } from '../../compute/hypervisor.ts';
import { FILES } from './arguments.ts';
import { connectIn } from './guest-socket.ts';
import { handleOf, isAlive, type ProcessIdentity } from './processes.ts';
import { QmpClient, QmpError, type QmpEvent } from './qmp.ts';

export interface RunDeps {
  readonly vmId: string;
  readonly identity: ProcessIdentity;
  /** With the guest's sockets. */
  readonly folder: string;
  /** Last words of the process, for humans; null: none. */
  readonly lastWords: () => string | null;
  /** Told once when the process is gone, whoever ended it. */
  readonly onGone: (run: GuestRun, end: Pick<GuestEnd, 'cause' | 'message'>) => void;
}

const POLL_MS = 20;
const RECONNECT_MS = 500;
/** From the close of its sockets to the end of the process: QEMU writes back its disks in between. */
const DYING_MS = 3000;
/** Node hears of the exit of a child a little after /proc shows it. */
const EXIT_STATUS_MS = 300;

export class GuestRun {
  readonly vmId: string;
  readonly identity: ProcessIdentity;
  readonly handle: string;
  /** It was told to stop: its end is no news. */
  isStopping = false;
  readonly #deps: RunDeps;
  #control: Promise<QmpClient> | null = null;
  #events: QmpClient | null = null;
  #isClosed = false;
  #isGone = false;
  #shutdownReason: string | null = null;
  #hasPanicked = false;
  #exit: string | null = null;
  #vcpuThreads: readonly number[] | null = null;

  constructor(deps: RunDeps) {
    this.#deps = deps;
    this.vmId = deps.vmId;
    this.identity = deps.identity;
    this.handle = handleOf(deps.identity);
  }

  /** What the parent heard of its exit, such as `killed by SIGKILL`. */
  noteExit(text: string): void {
    this.#exit = text;
  }

  get isAlive(): boolean {
    return !this.#isGone && isAlive(this.identity);
  }

  /** A QMP command over the control socket, connected anew when it was lost. Rejects with QmpError. */
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

  async #connect(name: string, options: Parameters<typeof QmpClient.open>[1]): Promise<QmpClient> {
    const socket = await connectIn(this.#deps.folder, name).catch((error: Error) => {
      throw new QmpError('closed', `no connection to QMP: ${error.message}`);
    });
    const client = await QmpClient.open(socket, options);
    // Behind the socket must be this guest, whatever its folder says.
    const answer = (await client.command('query-uuid', {}, options?.timeoutMs)) as { UUID?: unknown } | null;
    if (answer?.UUID === this.identity.uuid && !this.#isClosed) return client;
    client.close();
    throw new QmpError('closed', 'QMP belongs to another guest');
  }

  /** Connects the events socket. From then on the end of the process is noticed. Rejects with QmpError. */
  async watch(): Promise<void> {
    if (this.#events !== null && !this.#events.isClosed) return;
    const client = await this.#connect(FILES.events, { onEvent: (event) => this.#take(event) });
    this.#events = client;
    client.onClose(() => void this.#afterClose());
  }

  /** As watch(), and tries again until it succeeds or the process is gone. */
  async watchPersistently(): Promise<void> {
    await this.watch().catch(() => void this.#afterClose());
  }

  #take({ name, data }: QmpEvent): void {
    if (name === 'GUEST_PANICKED') this.#hasPanicked = true;
    if (name === 'SHUTDOWN' && typeof data['reason'] === 'string') this.#shutdownReason = data['reason'];
  }

  async #afterClose(): Promise<void> {
    if (!(await this.waitGone(DYING_MS)) && !this.#isClosed) {
      await sleep(RECONNECT_MS);
      if (!this.#isClosed) await this.watchPersistently();
      return;
    }
    if (this.#isGone || this.#isClosed) return;
    this.#isGone = true;
    for (let waited = 0; this.#exit === null && waited < EXIT_STATUS_MS; waited += POLL_MS) {
      await sleep(POLL_MS);
    }
    this.#deps.onGone(this, this.#end());
    this.close();
  }

  #end(): Pick<GuestEnd, 'cause' | 'message'> {
    if (this.#hasPanicked) return { cause: 'guest_panic', message: 'the kernel of the guest gave up' };
    const reason = this.#shutdownReason;
    if (reason === 'guest-shutdown') {
      return { cause: 'guest_shutdown', message: 'the guest powered itself off' };
    }
    const what = this.#exit ?? (reason === null ? 'the process is gone' : `the process ended: ${reason}`);
    const words = this.#deps.lastWords();
    return { cause: 'crashed', message: words === null ? what : `${what}: ${words}` };
  }

  /** Whether the process was gone within that time. */
  async waitGone(withinMs: number): Promise<boolean> {
    // Counted in steps: a clock that is held up by a busy host would give the guest less than its time.
    for (let waited = 0; isAlive(this.identity); waited += POLL_MS) {
      if (waited >= withinMs || this.#isClosed) return false;
      await sleep(POLL_MS);
    }
    return true;
  }

  /** Threads of the host that run the guest's processors. */
  async vcpuThreads(): Promise<readonly number[]> {
    if (this.#vcpuThreads === null) {
      const cpus = (await this.command('query-cpus-fast')) as readonly { 'thread-id'?: unknown }[];
      this.#vcpuThreads = cpus.map((cpu) => Number(cpu['thread-id']));
    }
    return this.#vcpuThreads;
  }

  /** Lets go of the process; it runs on. */
  close(): void {
    this.#isClosed = true;
    this.#events?.close();
    this.#control?.then((client) => client.close()).catch(() => {});
  }
}
