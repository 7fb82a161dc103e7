/** A foreign process: its identity, ending it, and its exit. */
import type { ChildProcess } from 'node:child_process';
import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '../../platform/errors.ts';
import { isAlive, type ProcessIdentity, signalProcess } from './process-identity.ts';

export interface ProcessEnd {
  /** null: ended by a signal, or unknown. */
  readonly code: number | null;
  /** `SIGKILL` etc.; null: exited, or unknown. */
  readonly signal: string | null;
  /** ms since 1970; null: unknown. */
  readonly at: number | null;
}

export interface RunningDeps {
  readonly identity: ProcessIdentity;
  /** null: it was adopted. */
  readonly child: ChildProcess | null;
  /** Whether the process leads a process group that survives its end. */
  readonly leadsGroup: boolean;
  /** Called once when it is gone. */
  readonly onGone: () => Promise<ProcessEnd>;
}

const POLL_MS = 10;
/** Poll interval for a process that is not our child. */
const WATCH_MS = 250;
const KILL_MS = 5000;

export class RunningProcess {
  readonly #deps: RunningDeps;
  readonly identity: ProcessIdentity;
  /** Resolves when it and its children are gone. Does not keep us running. Never rejects. */
  readonly ended: Promise<ProcessEnd>;
  #isReleased = false;
  /** Ends the wait before the next check. */
  readonly #polling = new AbortController();

  constructor(deps: RunningDeps) {
    this.#deps = deps;
    this.identity = deps.identity;
    this.ended = this.#gone().then(() => {
      this.#killGroup();
      return deps.onGone();
    });
  }

  get pid(): number {
    return this.identity.pid;
  }

  get isAlive(): boolean {
    return isAlive(this.identity);
  }

  /** Streams or channel of the process; null when it was adopted. */
  get child(): ChildProcess | null {
    return this.#deps.child;
  }

  /**
   * Asks the process to end, and kills it with all its descendants if it has not ended after `graceMs`; 0: at
   * once. A process that sees only its own processes, and has no handler for `signal`, does not receive it.
   * Throws `internal_error` if even SIGKILL does not end it, because it hangs in the kernel.
   */
  async end({
    signal = 'SIGTERM',
    graceMs,
  }: {
    signal?: NodeJS.Signals;
    graceMs: number;
  }): Promise<ProcessEnd> {
    this.#deps.child?.ref();
    if (graceMs > 0) signalProcess(this.identity, signal);
    if (!(await this.#isGoneWithin(graceMs))) {
      signalProcess(this.identity, 'SIGKILL');
      if (!(await this.#isGoneWithin(KILL_MS)))
        throw new AppError('internal_error', 'the process does not end');
    }
    this.#polling.abort();
    return this.ended;
  }

  /** Stops watching: `ended` may never resolve. The process continues. */
  release(): void {
    this.#isReleased = true;
  }

  /** Counted in steps: a clock on a busy host could shorten the wait. */
  async #isGoneWithin(ms: number): Promise<boolean> {
    for (let waited = 0; this.isAlive; waited += POLL_MS) {
      if (waited >= ms) return false;
      await sleep(POLL_MS);
    }
    return true;
  }

  async #gone(): Promise<void> {
    const { child } = this.#deps;
    if (child?.exitCode === null && child.signalCode === null)
      await new Promise((resolve) => child.once('exit', resolve));
    // The waiting shell may have been killed before the process.
    const idle = { ref: false, signal: this.#polling.signal };
    while (this.isAlive) {
      if (this.#isReleased) return new Promise(() => {});
      await sleep(WATCH_MS, undefined, idle).catch(() => {});
    }
  }

  #killGroup(): void {
    if (!this.#deps.leadsGroup) return;
    try {
      process.kill(-this.pid, 'SIGKILL');
    } catch {
      // No process is left.
    }
  }
}

export interface Ending {
  readonly pid: number;
  /** Counted like a shell's $?: 128 and more for signals. */
  readonly status: number;
  /** ms since 1970. */
  readonly at: number;
}

const NOTE = /^(\d+) (\d+)\n$/;
const SIGNALLED = 128;

/** The note at `path`; null: missing or incomplete. */
export function readEnding(path: string): Ending | null {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return null;
  }
  try {
    const [, pid, status] = NOTE.exec(readFileSync(fd, 'latin1')) ?? [];
    if (pid === undefined) return null;
    return { pid: Number(pid), status: Number(status), at: Math.floor(fstatSync(fd).mtimeMs) };
  } finally {
    closeSync(fd);
  }
}

/** For humans. */
export function endingText({ status }: Pick<Ending, 'status'>): string {
  const { code, signal } = exitOf(status);
  return signal === null ? `the process exited with status ${code}` : `the process was killed by ${signal}`;
}

/** The exit code, or the signal, of a shell's $?. */
export function exitOf(status: number): { readonly code: number | null; readonly signal: string | null } {
  return status > SIGNALLED
    ? { code: null, signal: signalName(status - SIGNALLED) }
    : { code: status, signal: null };
}

/** `SIGKILL` etc.; `signal 99` if the host has no name. */
export function signalName(number: number): string {
  const found = Object.entries(constants.signals).find(([, value]) => value === number);
  return found?.[0] ?? `signal ${number}`;
}
