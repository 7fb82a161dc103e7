/**
 * A database server run by Cloudlet: one process, with its own user if possible, that sees only its
 * folder. It continues when Cloudlet is killed, and the next start adopts it. A server that users
 * reach directly is restarted when it ends, at a fixed port, because programs are configured with
 * it. An account's server (account-servers.ts) runs on demand, at any port.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { SEE_LOG } from '../../platform/alarms.ts';
import { systemClock } from '../../platform/clock.ts';
import { AppError } from '../../platform/errors.ts';
import { lastReason } from '../host-process/foreign-files.ts';
import type { ForeignProgram } from '../host-process/foreign-program.ts';
import type { HostProcesses } from '../host-process/host-processes.ts';
import type { RunningProcess } from '../host-process/running-process.ts';
import {
  forgetPort,
  freePort,
  hadPort,
  isFree,
  keepPort,
  keptPort,
  newPort,
  portTaken,
} from '../server-port.ts';
import type { EngineServer } from './database-server.ts';
import type { ServerTls } from './links/server-tls.ts';
import { upkeep } from './processes/long-sessions.ts';
import { ServerLog } from './processes/server-log.ts';
import { makeServerFolders } from './processes/server-owner.ts';
import type { ServerRounds } from './processes/server-rounds.ts';
import { ServerWords, withReason } from './processes/server-trouble.ts';
import { StartProgress } from './processes/start-progress.ts';
import type { DataTemplate } from './programs/data-template.ts';
import { processName } from './server-data.ts';

export interface ServerFolders {
  /** Our folder, not accessible to the server: its process, log and port. */
  readonly keeper: string;
  /** Everything that the server can write. */
  readonly home: string;
  /** The path as the server sees it. */
  readonly seen: string;
}

/** Describes one kind of server. */
export interface ServerKind {
  /** `postgresql`. */
  readonly name: string;
  /** For humans. */
  readonly title: string;
  /** First port to try; the server uses the first free one. */
  readonly firstPort: number;
  readonly memoryMb: number;
  /** Alternative for users if it does not start, for messages. */
  readonly instead?: string;
  readonly stop: { readonly signal: NodeJS.Signals; readonly graceMs: number };
  /** Creates the data if missing; incomplete data is created again. Rejects soon after `closing` aborts. */
  initialise(folders: ServerFolders, closing: AbortSignal): Promise<void>;
  program(
    folders: ServerFolders,
    port: number,
  ): Pick<ForeignProgram, 'command' | 'args' | 'env' | 'readOnly' | 'temporaryMb'>;
  /** Rejects until it is usable; then prepares everything that its databases need. */
  ping(folders: ServerFolders, port: number): Promise<void>;
  /** A minimal request. Rejects if refused. */
  probe(): Promise<unknown>;
}

/** Everything that the ServerKind of an SQL engine is built from. */
export interface ServerKindDeps {
  readonly processes: HostProcesses;
  readonly uid: number | null;
  readonly firstPort: number;
  /** For users on other hosts; null: loopback only, without TLS. */
  readonly tls: ServerTls | null;
  readonly passwordOf: (role: string) => string;
  /** Maximum connections of users; null: no users connect to this server. */
  readonly connections: number | null;
  /** Data template for a new server; null: created from scratch. */
  readonly template: DataTemplate | null;
  /** Whether the server keeps its log until that is archived. */
  readonly keepsLog: boolean;
  /** Sets up shared objects once it answers. Rejects until then. */
  readonly greet: () => Promise<void>;
  /** See ServerKind. */
  readonly probe: () => Promise<unknown>;
}

export interface ManagedServerDeps {
  readonly kind: ServerKind;
  readonly processes: HostProcesses;
  /** User number of the server, for HostProcesses. */
  readonly uid: number | null;
  /** Cloudlet's directory for this server only. */
  readonly folder: string;
  readonly alarms: { raise(code: string, detail: string, fix: string): void; clear(code: string): void };
  readonly warn: (text: string) => void;
  /** If set, the server runs only on demand, on any port, and this is called when it ends on its own. */
  readonly onEnd?: () => void;
}

/** A start without progress for this long is aborted. */
const STUCK_MS = 60_000;
const POLL_MS = 20;
const MOST_POLL_MS = 1000;
/** A server that is unusable for this long raises an alarm. */
const VOICE_MS = 10_000;
/** Maximum time that a call waits for a start. */
const WAIT_MS = 30_000;
const RETRY_MS = 5000;
const MOST_RETRY_MS = 60_000;
const PROBE_MS = 10_000;
const SILENT_MS = 5000;
const STARTS = 5;
const STARTS_MS = 500;

export class ManagedServer implements EngineServer {
  /** The output of the server and its sessions. */
  readonly log: ServerLog;
  readonly #deps: ManagedServerDeps;
  #running: RunningProcess | null = null;
  #isUp = false;
  #isClosing = false;
  readonly #closing = new AbortController();
  /** The running stop, or null. */
  #stopping: Promise<void> | null = null;
  #starting: Promise<void> | null = null;
  #retry: NodeJS.Timeout | undefined;
  readonly #rounds: ServerRounds;
  readonly #probing: NodeJS.Timeout;
  #isProbing = false;
  /** Consecutive failed starts. */
  #failures = 0;
  #problem: AppError | null = null;

  constructor(deps: ManagedServerDeps) {
    this.#deps = deps;
    this.log = new ServerLog(join(this.#keeper, 'log'));
    this.#rounds = upkeep(this, deps.processes);
    this.#probing = setInterval(() => void this.#probe(), PROBE_MS);
    this.#probing.unref();
  }

  get problem(): AppError | null {
    return this.#problem;
  }

  get pid(): number | null {
    return this.#running?.isAlive ? this.#running.pid : null;
  }

  /** Address of the server on loopback; null until its first start. */
  get port(): number | null {
    return keptPort(this.#keeper);
  }

  get isMade(): boolean {
    return hadPort(this.#keeper);
  }

  get isUp(): boolean {
    // The end of the process is noticed with a delay.
    return this.#isUp && this.#running?.isAlive === true;
  }

  get folders(): Omit<ServerFolders, 'seen'> {
    const { folder } = this.#deps;
    return { keeper: join(folder, 'keeper'), home: join(folder, 'home') };
  }

  get #keeper(): string {
    return this.folders.keeper;
  }

  /**
   * See EngineServer. A caller that has waited long for a start gets `engine_unavailable`, unless
   * it waits for as long as the start makes progress.
   */
  async up({ isPatient = false }: { readonly isPatient?: boolean | undefined } = {}): Promise<void> {
    if (this.isUp) return;
    if (this.#isClosing) throw this.#unavailable('is being stopped with Cloudlet');
    await this.#stopping;
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null;
    });
    if (isPatient) return void (await this.#starting);
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => late.reject(this.#problem ?? this.#unavailable('is starting')), WAIT_MS);
    await Promise.race([this.#starting, late.promise]).finally(() => clearTimeout(timer));
  }

  /** Shuts it down cleanly; the next Cloudlet starts it. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#closing.abort();
    clearTimeout(this.#retry);
    await this.#rounds.close();
    clearInterval(this.#probing);
    await this.stop();
  }

  /** Stops the server and its sessions until it is needed again: orderly, or by SIGKILL. */
  async stop(how: 'properly' | 'at_once' = 'properly'): Promise<void> {
    this.#stopping ??= this.#stop(how).finally(() => {
      this.#stopping = null;
    });
    await this.#stopping;
  }

  async #stop(how: 'properly' | 'at_once'): Promise<void> {
    const { stop } = this.#deps.kind;
    // A hanging start would delay the stop.
    if (how === 'at_once' && this.#running?.isAlive) await this.#running.end({ graceMs: 0 });
    await this.#starting?.catch(() => {});
    this.#isUp = false;
    if (this.#running?.isAlive) await this.#running.end(how === 'properly' ? stop : { graceMs: 0 });
  }

  /** Adopts a server that an earlier Cloudlet left running; returns whether there was one. */
  async takeOver(): Promise<boolean> {
    const left = await this.#leftRunning();
    left?.release();
    if (left !== null) await this.up();
    return left !== null;
  }

  async #start(): Promise<void> {
    const { kind, alarms } = this.#deps;
    try {
      const folders = await this.#makeFolders();
      const running = await this.#begin(folders);
      this.#isUp = true;
      this.#failures = 0;
      this.#problem = null;
      alarms.clear(`${kind.name}_unavailable`);
      void running.ended.then(() => this.#ended(running));
    } catch (error) {
      const problem = error instanceof AppError ? error : this.#unavailable('does not start', error);
      if (!this.#isClosing) this.#report(problem);
      if (this.#deps.onEnd === undefined && this.isMade && !this.#isClosing) this.#tryAgain();
      throw problem;
    }
  }

  #report(problem: AppError): void {
    const { kind, alarms } = this.#deps;
    this.#problem = problem;
    alarms.raise(`${kind.name}_unavailable`, withReason(problem), problem.hint ?? SEE_LOG);
  }

  /** A server that hangs has a process but does not respond: it raises an alarm until it responds again. */
  async #probe(): Promise<void> {
    if (!this.isUp || this.#isProbing) return;
    this.#isProbing = true;
    const { kind, alarms } = this.#deps;
    const isSilent = Symbol('silent');
    try {
      const asked = kind.probe().catch((error: unknown) => error);
      const said = await Promise.race([asked, sleep(SILENT_MS, isSilent, { ref: false })]);
      if (!this.isUp) return;
      if (said === isSilent)
        this.#report(this.#unavailable(`has not answered for ${SILENT_MS / 1000} seconds`));
      else if (said instanceof Error) this.#report(this.#unavailable('does not answer', said));
      else if (this.#problem !== null) {
        this.#problem = null;
        alarms.clear(`${kind.name}_unavailable`);
      }
      if (said === isSilent) await asked;
    } finally {
      this.#isProbing = false;
    }
  }

  /** Processes of an earlier server that was killed end a little later, and can delay the first start. */
  async #begin(folders: ServerFolders): Promise<RunningProcess> {
    const isFirst = !this.isMade;
    for (let tries = 1; ; tries++) {
      const running = (await this.#adopt()) ?? (await this.#launch(folders));
      this.#running = running;
      try {
        await this.#answer(running, folders);
        return running;
      } catch (error) {
        if (running.isAlive || this.#isClosing || this.#stopping !== null) throw error;
        // Another program took the port since the check, and no user knows it yet.
        if (isFirst && !(await isFree(this.port ?? 0))) forgetPort(this.#keeper);
        if (tries === STARTS) throw error;
        await sleep(STARTS_MS);
      }
    }
  }

  #tryAgain(): void {
    clearTimeout(this.#retry);
    const wait = Math.min(RETRY_MS * 2 ** this.#failures++, MOST_RETRY_MS);
    this.#retry = setTimeout(() => void this.up().catch(() => {}), wait);
    this.#retry.unref();
  }

  #ended(running: RunningProcess): void {
    if (this.#isClosing || this.#stopping !== null || this.#running !== running || !this.#isUp) return;
    this.#isUp = false;
    const { kind, warn, onEnd } = this.#deps;
    warn(`${kind.title} exited unexpectedly${onEnd ? '' : ' and is restarted'}`);
    if (onEnd) onEnd();
    else void this.up().catch(() => {});
  }

  async #makeFolders(): Promise<ServerFolders> {
    const { uid, processes } = this.#deps;
    const { keeper, home } = this.folders;
    const folders = { keeper, home, seen: await processes.pathOf(home) };
    await makeServerFolders(folders, uid, async (owner) => {
      const left = await processes.adopt({ ...this.#process, uid: owner }, keeper);
      await left?.end(this.#deps.kind.stop);
    });
    return folders;
  }

  async #adopt(): Promise<RunningProcess | null> {
    const found = await this.#leftRunning();
    // The port was no longer stored, so no client knows it.
    if (found === null || this.port !== null) return found;
    await found.end(this.#deps.kind.stop);
    return null;
  }

  /** The process that an earlier Cloudlet left running. */
  #leftRunning(): Promise<RunningProcess | null> {
    return this.#deps.processes.adopt(this.#process, this.#keeper);
  }

  /** The process as HostProcesses knows it. */
  get #process() {
    const { kind, uid, folder } = this.#deps;
    return { name: processName(kind.name, folder), memoryMb: kind.memoryMb, uid };
  }

  async #launch(folders: ServerFolders): Promise<RunningProcess> {
    const { processes, kind } = this.#deps;
    const kept = this.port;
    let port = kept ?? (await freePort(kind.firstPort));
    const isAny = this.#deps.onEnd !== undefined && kept !== null;
    if (isAny && !(await isFree(port))) port = await freePort(kind.firstPort);
    if (!(await isFree(port))) throw portTaken(port, kind.title);
    await kind.initialise(folders, this.#closing.signal);
    this.#closing.signal.throwIfAborted();
    const program = { ...this.#process, ...kind.program(folders, port) };
    const running = await processes.keep({ ...program, folder: folders.home, network: 'host' }, this.#keeper);
    // Stored only now: a server that fails earlier chooses again.
    if (kept !== port) this.#keep(port);
    return running;
  }

  #keep(port: number): void {
    const { kind, alarms, warn, onEnd } = this.#deps;
    if (onEnd === undefined && hadPort(this.#keeper)) {
      const { detail, fix } = newPort(kind.title, port);
      alarms.raise(`${kind.name}_port_changed`, detail, fix);
      warn(detail);
    }
    keepPort(this.#keeper, port);
  }

  async #answer(running: RunningProcess, folders: ServerFolders): Promise<void> {
    const { kind } = this.#deps;
    const progress = new StartProgress({ clock: systemClock, pid: running.pid, stuckMs: STUCK_MS });
    let waited = 0;
    for (let poll = POLL_MS; ; poll = Math.min(2 * poll, MOST_POLL_MS)) {
      try {
        return await kind.ping(folders, this.port ?? 0);
      } catch (error) {
        if (!running.isAlive) throw this.#unavailable('does not start', error);
        if (this.#isClosing) throw error;
        if (waited < VOICE_MS && waited + poll >= VOICE_MS)
          this.#report(this.#unavailable('runs, but cannot be used yet', error));
        if (!progress.isOver()) {
          await sleep(poll);
          waited += poll;
          continue;
        }
        await running.end({ signal: kind.stop.signal, graceMs: 0 });
        throw this.#unavailable('runs, but does not answer', error);
      }
    }
  }

  #unavailable(what: string, cause?: unknown): AppError {
    const words = cause === undefined ? null : lastReason(join(this.#keeper, 'log'));
    const { instead } = this.#deps.kind;
    const other = instead === undefined ? '' : `; ${instead}`;
    return new AppError('engine_unavailable', `${this.#deps.kind.title} ${what}`, {
      hint: `ask the operator, who has an alarm with the reason; Cloudlet retries automatically${other}`,
      retryAfterSeconds: 5,
      cause: words === null ? cause : new ServerWords(words, { cause }),
    });
  }
}
