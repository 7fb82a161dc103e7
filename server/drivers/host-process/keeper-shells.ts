/**
 * The shells that start foreign processes and wait for them. Forking takes longer the more memory Cloudlet
 * has, and closing descriptors takes a shell some time, so one that has done both can be kept ready.
 */
import type { ChildProcess, StdioOptions } from 'node:child_process';
import type { Socket } from 'node:net';
import { patienceMs } from '../../platform/host/host-facts.ts';
import { startProgram } from '../../platform/host/host-programs.ts';
import { READY, shellCommand } from './launch-script.ts';
import { isThere } from './process-identity.ts';

interface ShellOptions {
  /** The program's descriptors 0, 1, 2, and from 4 on, as for Node's spawn. */
  readonly stdio: readonly unknown[];
  readonly endsWithUs: boolean;
  /** Words before the shell's command, which then run it. */
  readonly first?: readonly string[];
}

/** On a quiet host. */
const READY_MS = 30_000;
const MAX_OUTPUT_BYTES = 8192;
const READY_LINE = new RegExp(`^${READY}(.*)\n`, 'm');
const KEPT: ShellOptions = { stdio: ['ignore', 'ignore', 'ignore'], endsWithUs: false };

export class KeeperShell {
  readonly child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.child = child;
  }

  /** Resolves when it runs. Rejects when the host allows no further process or file. */
  static async begin({ stdio, endsWithUs, first = [] }: ShellOptions): Promise<KeeperShell> {
    const others = stdio.slice(3);
    const [program = '', ...words] = [...first, ...shellCommand(others.length, endsWithUs)];
    const child = await startProgram(program, words, {
      cwd: '/',
      env: {},
      detached: true,
      stdio: [...stdio.slice(0, 3), 'pipe', ...others] as StdioOptions,
    });
    const shell = new KeeperShell(child);
    // The shell may have ended, which the missing answer shows.
    shell.#line.on('error', () => {});
    return shell;
  }

  get #line(): Socket {
    return this.child.stdio[3] as Socket;
  }

  get isAlive(): boolean {
    const { exitCode, signalCode, pid = 0 } = this.child;
    // Node hears of an end a little late.
    return exitCode === null && signalCode === null && isThere(pid);
  }

  /**
   * Runs a script, once. Resolves with its output on descriptor 3: with `stat`, the process's line of
   * /proc/…/stat, when it got so far.
   */
  async run(script: string): Promise<{ readonly stat: string | null; readonly text: string }> {
    const line = this.#line;
    line.ref();
    let text = '';
    const timer = setTimeout(() => line.destroy(), patienceMs(READY_MS));
    line.setEncoding('latin1').end(script);
    try {
      for await (const piece of line) {
        text += piece;
        if (READY_LINE.test(text) || text.length > MAX_OUTPUT_BYTES) break;
      }
    } catch (error) {
      text += String(error);
    } finally {
      clearTimeout(timer);
    }
    return { stat: READY_LINE.exec(text)?.[1] ?? null, text };
  }

  /** Lets the event loop end meanwhile. */
  unref(): void {
    this.child.unref();
    this.#line.unref();
  }

  /** Ends an unused shell. */
  dismiss(): void {
    this.#line.destroy();
  }

  /** Kills the shell and its process group. */
  kill(): void {
    try {
      if (this.child.pid !== undefined) process.kill(-this.child.pid, 'SIGKILL');
    } catch {
      // The shell has ended.
    }
  }
}

/** Shells for processes that outlive Cloudlet; one is prepared, and ends with Cloudlet. */
export class KeeperShells {
  #spare: Promise<KeeperShell | null> | null = null;
  #isClosed = false;

  /** Prepares the next shell. */
  refill(): void {
    if (this.#isClosed || this.#spare !== null) return;
    const spare = KeeperShell.begin(KEPT).then(
      (shell) => {
        shell.unref();
        shell.child.once('exit', () => {
          if (this.#spare === spare) this.#spare = null;
        });
        return shell;
      },
      () => null,
    );
    this.#spare = spare;
  }

  /** The prepared shell, or a new one. Rejects like KeeperShell.begin(). */
  async take(): Promise<KeeperShell> {
    const spare = this.#spare;
    this.#spare = null;
    const shell = (await spare) ?? null;
    return shell?.isAlive ? shell : KeeperShell.begin(KEPT);
  }

  /** Ends the prepared shell. */
  close(): void {
    this.#isClosed = true;
    void this.#spare?.then((shell) => shell?.dismiss());
    this.#spare = null;
  }
}
