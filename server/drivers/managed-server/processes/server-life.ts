/**
 * Decides when an account's server runs: it starts on demand, as soon as a process slot is free, and stops
 * when idle. Its listener leads to the server only while it runs.
 */
import { QueryFailed } from '../../../databases/engine.ts';
import type { Clock } from '../../../platform/clock.ts';
import { KeyedMutex } from '../../../platform/concurrency.ts';
import { AppError } from '../../../platform/errors.ts';
import { DISPLACED_HINT, displaced } from '../../engine-children/child-failures.ts';
import type { AccountServerDeps, Wish } from '../accounts/account-kind.ts';
import type { ServerUse } from '../sql-engine.ts';
import { StartTrouble } from './server-trouble.ts';

const LOCK = 'server';
/** Delay after a failed start, doubled each time. */
const [RETRY_MS, MOST_RETRY_MS] = [1000, 60_000];

type Deps = Pick<
  AccountServerDeps,
  'engine' | 'folder' | 'proxy' | 'listener' | 'takeSlot' | 'clock' | 'beforeSleep'
>;

export interface ServerLifeDeps extends Deps {
  readonly work: ServerWork;
  /** Whether connections are accepted. */
  readonly isWanted: () => boolean;
  /** Applies missed changes to a running server before its users are admitted. */
  readonly begin: () => Promise<void>;
  /** The server no longer runs. */
  readonly onLeft: () => void;
  /** Latest known use of the server. */
  readonly lastUse: () => ServerUse;
}

export class ServerLife {
  readonly #deps: ServerLifeDeps;
  /** One start or stop at a time. */
  readonly #locks = new KeyedMutex();
  readonly #trouble: StartTrouble;
  /** Releases its process slot; null: none. */
  #leave: (() => void) | null = null;
  /** Failed starts since the last success. */
  #failures = 0;
  /** No start is tried before, monotonic ms. */
  #notBefore = 0;
  /** The port that the listener leads to; null: none; undefined: unknown. */
  #led: number | null | undefined;
  #isOpen = false;
  #isClosed = false;

  constructor(deps: ServerLifeDeps) {
    this.#deps = deps;
    this.#trouble = new StartTrouble(deps.folder);
  }

  get isUp(): boolean {
    return this.#server.isUp;
  }

  /** Why the server does not start; null: no known reason. */
  get trouble(): string | null {
    return this.isUp ? null : this.#trouble.what;
  }

  get #server() {
    return this.#deps.engine.server;
  }

  /** Listens for users; returns whether it did not before. Rejects if the port is taken. */
  async open(): Promise<boolean> {
    if (this.#isOpen) return false;
    await this.#deps.proxy.open(this.#deps.listener);
    [this.#isOpen, this.#led] = [true, undefined];
    return true;
  }

  /** Adopts a server that an earlier Cloudlet left running. */
  async takeOver(): Promise<void> {
    await this.#locks.run(LOCK, async () => {
      if (this.isUp || !(await this.#server.takeOver())) return;
      this.#leave = await this.#deps.takeSlot();
      await this.#began();
    });
  }

  /** Ensures that it runs and its listener leads to it. Throws `engine_unavailable`. */
  async wake({ signal, isPatient }: Wish = {}): Promise<void> {
    if (this.isUp && this.#leave !== null) return;
    await this.#locks.run(LOCK, async () => {
      if (this.isUp && this.#leave !== null) return;
      const { clock, takeSlot } = this.#deps;
      if (clock.monotonic() < this.#notBefore) throw this.#server.problem ?? startFailed();
      this.#leave ??= await takeSlot(signal);
      try {
        await this.#server.up({ isPatient });
        await this.#began();
        this.#failures = 0;
        this.#trouble.note(null);
      } catch (error) {
        this.#left();
        const { pid, problem } = this.#server;
        if (pid === null && problem !== null && !this.#isClosed) this.#trouble.note(problem.message);
        const wait = Math.min(RETRY_MS * 2 ** this.#failures++, MOST_RETRY_MS);
        this.#notBefore = clock.monotonic() + wait;
        throw error;
      }
    });
  }

  /** Whether a failed server should be started now, whether or not anyone waits. */
  get isToTryAgain(): boolean {
    const { work, isWanted, clock } = this.#deps;
    if (this.trouble === null || work.pending > 0 || !isWanted()) return false;
    return clock.monotonic() >= this.#notBefore;
  }

  /** Points the listener at the server if it is up and users are admitted, else nowhere. */
  async lead(): Promise<void> {
    const isReached = this.isUp && this.#deps.isWanted();
    if (!this.#isOpen) return;
    const port = isReached ? this.#server.port : null;
    // Every new database calls this, and usually nothing needs to change.
    if (port !== this.#led) await this.#leadTo(port);
  }

  async #leadTo(port: number | null): Promise<void> {
    this.#led = undefined;
    await this.#deps.proxy.lead(this.#deps.listener.name, port);
    this.#led = port;
  }

  /** Stops the server and ends all sessions immediately; a new connection may start the server again. */
  async end(): Promise<void> {
    await this.#server.stop('at_once');
    await this.#locks.run(LOCK, async () => {
      // A connection started the server in the meantime.
      if (this.isUp) return this.lead();
      await this.#leadTo(null);
      this.#left();
    });
  }

  /** Ends it permanently; `work` runs before it could be started again. */
  async endForGood(work: () => Promise<void>): Promise<void> {
    await this.#server.stop('at_once');
    await this.#locks.run(LOCK, async () => {
      // A connection may have started it in the meantime.
      await this.#server.stop('at_once');
      this.#left();
      await this.#shut();
      await work();
    });
  }

  /** Ends it with all sessions, and restarts it if connections are accepted. */
  async restart(): Promise<void> {
    await this.#stop();
    this.#notBefore = 0;
    if (this.#deps.isWanted()) await this.wake();
  }

  /** Stops it for another server, ending its statements, the oldest of which began at `since`. */
  async endBusy(since: number | null, why: string): Promise<void> {
    const { work } = this.#deps;
    this.#server.log.add(`Cloudlet: ${work.displace(since, why)}. ${DISPLACED_HINT}`);
    await this.#leadTo(null);
    await this.#stop();
  }

  /** Stops it if still idle: no sessions or, for `capacity`, nothing running. */
  async sleep(why: 'unused' | 'capacity', stopped: () => void): Promise<void> {
    const { proxy, listener, engine, work, beforeSleep, lastUse } = this.#deps;
    await this.#locks.run(LOCK, async () => {
      if (!this.isUp || work.pending > 0) return;
      await this.#leadTo(null);
      const use = await engine.use().catch(lastUse);
      // Log-ins in progress are not sessions yet.
      const { open } = await proxy.figures(listener.name);
      const isQuiet = why === 'unused' ? use.sessions === 0 && open === 0 : use.busy === 0;
      // A connection came just before the listener was detached.
      if (!isQuiet || work.pending > 0) return this.lead();
      await beforeSleep();
      await engine.server.stop();
      stopped();
      this.#left();
    });
  }

  /** The server has ended. */
  ended(): void {
    void this.#locks.run(LOCK, async () => {
      if (this.isUp) return;
      await this.#leadTo(null);
      this.#left();
    });
  }

  /** Registers a server that takeOver() has not reached yet, so that close() ends it. Never rejects. */
  async adopt(): Promise<void> {
    await this.#locks.run(LOCK, async () => this.isUp || this.#server.takeOver()).catch(() => {});
  }

  /** Shuts the server down; the next Cloudlet starts it again. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#shut();
    await this.#deps.engine.close();
  }

  async #shut(): Promise<void> {
    await this.#deps.proxy.shut(this.#deps.listener.name);
    this.#isOpen = false;
  }

  async #stop(): Promise<void> {
    await this.#server.stop();
    await this.#locks.run(LOCK, async () => this.isUp || this.#left());
  }

  /** Runs with a running server. */
  async #began(): Promise<void> {
    await this.#deps.begin();
    await this.lead();
  }

  #left(): void {
    this.#leave?.();
    this.#leave = null;
    this.#deps.onLeft();
  }
}

/** Running work in an account's server, by Cloudlet and its users: the server does not sleep meanwhile. */
export class ServerWork {
  readonly #clock: Pick<Clock, 'monotonic'>;
  #pending = 0;
  /** Pending work that must not be ended for another account: dumps, changes. */
  #held = 0;
  /** Why the sessions were last ended. */
  #ended: AppError | null = null;
  /** Last use of the server, monotonic ms. */
  usedAt: number;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    this.#clock = clock;
    this.usedAt = clock.monotonic();
  }

  get pending(): number {
    return this.#pending;
  }

  /** Whether running work must be finished. */
  get isHeld(): boolean {
    return this.#held > 0;
  }

  /**
   * Counts the work as pending until it is done. `isStatement`: a user's statement, which may be
   * ended for another account. If sessions were ended in the meantime, it rejects with that reason.
   */
  async run<T>(work: () => Promise<T>, isStatement: boolean): Promise<T> {
    const held = isStatement ? 0 : 1;
    const before = this.#ended;
    this.#pending++;
    this.#held += held;
    try {
      return await work();
    } catch (error) {
      const isEnded = this.#ended !== before && !(error instanceof QueryFailed);
      throw isEnded ? this.#ended : error;
    } finally {
      this.#pending--;
      this.#held -= held;
      this.usedAt = this.#clock.monotonic();
    }
  }

  /** Call before all statements are ended; the oldest began at `since`. Returns the message for the owner. */
  displace(since: number | null, why: string): string {
    const now = this.#clock.monotonic();
    const seconds = Math.round((now - (since ?? now)) / 1000);
    const words = `Statements were ended, the longest after ${seconds} s: ${why}`;
    this.end(displaced(new Error(words)));
    return words;
  }

  /** Call before sessions are ended for that reason. */
  end(why: AppError): void {
    this.#ended = why;
  }
}

function startFailed(): AppError {
  return new AppError('engine_unavailable', 'The database server failed to start', {
    hint: 'Cloudlet retries within a minute; the reason is in the log of the server',
    retryAfterSeconds: 5,
  });
}
